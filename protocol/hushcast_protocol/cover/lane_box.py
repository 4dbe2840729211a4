"""What a host puts into a lane's blocks: what is new, then again what it gave longest ago.

It is told of nothing that arrived or did not: an owner that asked for what it lacks would tell a host in
league with its porter, which knows what it lost, who it is. So a host says all again until it is two weeks
old, as often as there is room.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_seals import LANE_ROOM

LANE_DAYS = 14  # days of 24 epochs for which a box's items are said again
MAX_LANE_BODIES = 4_096  # of one box, of 1 KiB each; where they lie they have a bound of their own
_SIZE = struct.Struct(">H")
MAX_LANE_ITEM = LANE_ROOM - _SIZE.size  # bytes

T = TypeVar("T")


@dataclass(slots=True)
class _Body(Generic[T]):
    what: T
    sizes: Sequence[int]
    came: int
    next: int = 0
    """The item that is said next."""


class LaneBox(Generic[T]):
    """What one box has, by where it lies; each body is said in one item or several."""

    def __init__(self, rules: CoverRules) -> None:
        self._days = rules.rounds_in(LANE_DAYS)
        self._new: deque[_Body[T]] = deque()
        self._said: deque[_Body[T]] = deque()  # what was given longest ago first

    def __len__(self) -> int:
        """Return how many bodies are kept."""
        return len(self._new) + len(self._said)

    def put(self, what: T, sizes: Sequence[int], now: int) -> None:
        """Take a body that came in a round, in items of these sizes.

        Of too many one gives way, first of those that were given. Raises `Refusal` where an item has no room
        in a block, or is empty.
        """
        if not sizes or not all(0 < size <= MAX_LANE_ITEM for size in sizes):
            raise Refusal(f"an item of a lane has 1 to {MAX_LANE_ITEM} bytes")
        if len(self) >= MAX_LANE_BODIES:
            (self._said or self._new).popleft()
        self._new.append(_Body(what, sizes, now))

    def restore(self, what: T, sizes: Sequence[int], came: int) -> None:
        """Take back a body that came before a restart; the last of them is said first, after what is new.

        Nobody knows any more which were said, and what came last an owner lacks most likely.
        """
        self._said.appendleft(_Body(what, sizes, came))

    def keep(self, holds: Callable[[T], bool]) -> None:
        """Let go of bodies that are not held any more."""
        self._new = deque(one for one in self._new if holds(one.what))
        self._said = deque(one for one in self._said if holds(one.what))

    def said(self, now: int) -> list[tuple[T, int]]:
        """Return which items fill the block of a round: bodies, and which item of each; a body ends once."""
        found: list[tuple[T, int]] = []
        again: list[_Body[T]] = []
        room = LANE_ROOM
        while (queue := self._next(now)) is not None:
            body = queue[0]
            room -= _SIZE.size + body.sizes[body.next]
            if room < 0:
                break
            found.append((body.what, body.next))
            body.next += 1
            if body.next == len(body.sizes):
                body.next = 0
                again.append(queue.popleft())
        self._said.extend(again)
        return found

    def _next(self, now: int) -> deque[_Body[T]] | None:
        for queue in (self._new, self._said):
            while queue and now - queue[0].came >= self._days:
                queue.popleft()
            if queue:
                return queue
        return None


def lane_filled(items: Iterable[bytes]) -> bytes:
    """Return the `LANE_ROOM` bytes of a round: items that have room in them, and zeros."""
    return b"".join(_SIZE.pack(len(item)) + item for item in items).ljust(LANE_ROOM, b"\0")


def lane_items(filled: bytes) -> list[bytes]:
    """Return the items in a block that was opened; raise `DecodeError` where a host filled it badly."""
    if len(filled) != LANE_ROOM:
        raise DecodeError("a block of a lane is of another size")
    items, at = [], 0
    while at + _SIZE.size <= LANE_ROOM:
        (size,) = _SIZE.unpack_from(filled, at)
        if size == 0:
            break
        at += _SIZE.size
        if at + size > LANE_ROOM:
            raise DecodeError("an item of a lane is cut off")
        items.append(filled[at : at + size])
        at += size
    if any(filled[at:]):
        raise DecodeError("a block of a lane is not well formed")
    return items
