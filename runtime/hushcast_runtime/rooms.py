"""A room: bounded places for unauthenticated connections, with random eviction when it is full."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from hushcast_runtime.environment import system_environment
from hushcast_runtime.transports.base import TransportError

Below = Callable[[int], int]
"""Draws a whole number from 0 to below its argument."""


_SYSTEM = system_environment().below


def _ignore() -> None:
    pass


class _Place:
    """One block in the room, and its index in the list of them."""

    __slots__ = ("index", "scope")

    def __init__(self, scope: trio.CancelScope, index: int) -> None:
        self.scope = scope
        self.index = index


_OUT = -1


class Room:
    """At most `size` blocks at once. When it is full, a newcomer gets the place of one drawn at random.

    Nobody waits and nobody can hold a place, so an attacker gains nothing by staying silent. With `rate`
    newcomers a second, a connection that needs `seconds` survives with a probability of exp(-rate * seconds /
    size). If the oldest were evicted, a rate of size / seconds would let nobody through; random eviction
    makes that several times as expensive, and retries succeed.
    """

    def __init__(self, size: int, below: Below = _SYSTEM, note: Callable[[], None] = _ignore) -> None:
        """`note` hears of each that gives way."""
        self._size = size
        self._below = below
        self._note = note
        self._places: list[_Place] = []

    def __len__(self) -> int:
        return len(self._places)

    @contextmanager
    def place(self, within: float = math.inf) -> Iterator[None]:
        """Hold a place for the block, which is cancelled after `within` seconds, or to make room.

        Raises `TransportError` in both cases, behind the block.
        """
        if len(self._places) >= self._size:
            self._make_room()
        with trio.CancelScope(deadline=trio.current_time() + within) as scope:
            place = _Place(scope, len(self._places))
            self._places.append(place)
            try:
                yield
            finally:
                gave_way = place.index == _OUT
                self._leave(place)
        if scope.cancelled_caught:
            raise TransportError(
                "the connection gave way to newer ones" if gave_way else "the other end took too long"
            )

    def _make_room(self) -> None:
        place = self._places[self._below(len(self._places))]
        self._leave(place)
        place.scope.cancel()
        self._note()

    def _leave(self, place: _Place) -> None:
        if place.index == _OUT:
            return
        last = self._places.pop()
        if last is not place:
            self._places[place.index] = last
            last.index = place.index
        place.index = _OUT
