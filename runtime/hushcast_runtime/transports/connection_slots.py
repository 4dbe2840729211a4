"""Connection slots: bounded places for unauthenticated connections, with random eviction when full."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType

import trio

from hushcast_runtime.environment import system_environment
from hushcast_runtime.transports.base import TransportError

Below = Callable[[int], int]
"""Draws a whole number from 0 to below its argument."""


_SYSTEM = system_environment().below


def _ignore() -> None:
    pass


_OUT = -1


class _Place:
    """One block in its slot, and its index in the list of them.

    A class and no generator, which each connection would pay for.
    """

    __slots__ = ("_room", "_within", "index", "scope")

    def __init__(self, room: ConnectionSlots, within: float) -> None:
        self._room = room
        self._within = within
        self.scope = trio.CancelScope()
        self.index = _OUT

    def __enter__(self) -> None:
        self.scope.deadline = trio.current_time() + self._within
        self._room._enter(self)
        self.scope.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        gave_way = self.index == _OUT
        self._room._leave(self)
        is_caught = self.scope.__exit__(kind, error, traceback)
        if self.scope.cancelled_caught:
            raise TransportError(
                "the connection gave way to newer ones" if gave_way else "the other end took too long"
            ) from None
        return is_caught


class ConnectionSlots:
    """At most `size` blocks at once. When it is full, a newcomer gets the place of one drawn at random.

    Nobody waits and nobody can hold a place, so an attacker gains nothing by staying silent. With `rate`
    newcomers a second, a connection that needs `seconds` survives with a probability of exp(-rate * seconds /
    size). If the oldest were evicted, a rate of size / seconds would let nobody through; random eviction
    makes that several times as expensive, and retries succeed.
    """

    __slots__ = ("_below", "_note", "_noted", "_places", "_size")

    def __init__(
        self, size: int, below: Below = _SYSTEM, note: Callable[..., None] = _ignore, *noted: str
    ) -> None:
        """`note` hears of each that gives way, by what is `noted`."""
        self._size = size
        self._below = below
        self._note = note
        self._noted = noted
        self._places: list[_Place] = []

    def __len__(self) -> int:
        return len(self._places)

    def place(self, within: float = math.inf) -> AbstractContextManager[None]:
        """Hold a place for the block, which is cancelled after `within` seconds, or to make room.

        Raises `TransportError` in both cases, behind the block.
        """
        return _Place(self, within)

    def _enter(self, place: _Place) -> None:
        """Give a place, that of another one if there is no more room."""
        if len(self._places) >= self._size:
            self._make_room()
        place.index = len(self._places)
        self._places.append(place)

    def _make_room(self) -> None:
        place = self._places[self._below(len(self._places))]
        self._leave(place)
        place.scope.cancel()
        self._note(*self._noted)

    def _leave(self, place: _Place) -> None:
        """Take a place back, if it was not given to another one meanwhile."""
        if place.index == _OUT:
            return
        last = self._places.pop()
        if last is not place:
            self._places[place.index] = last
            last.index = place.index
        place.index = _OUT
