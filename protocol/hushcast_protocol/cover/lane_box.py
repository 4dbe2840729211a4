"""What a host puts into a lane's blocks: what is new, then again what it gave longest ago.

It is told of nothing that arrived or did not: an owner that asked for what it lacks would tell a host in
league with its porter, which knows what it lost, who it is. So a host says all again until it is two weeks
old, as often as there is room.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.lane_seals import LANE_ROOM

LANE_DAYS = 14  # days of 24 epochs for which a box's items are said again
MAX_LANE_ITEMS = 4_096  # of one box; 1 KiB each they are its share of the spool
_SIZE = struct.Struct(">H")
MAX_LANE_ITEM = LANE_ROOM - _SIZE.size  # bytes


@dataclass(frozen=True, slots=True)
class _Item:
    body: bytes
    came: int


class LaneBox:
    """The items of one box."""

    def __init__(self, rules: CoverRules) -> None:
        self._days = rules.rounds_in(LANE_DAYS)
        self._new: deque[_Item] = deque()
        self._said: deque[_Item] = deque()  # what was given longest ago first

    def __len__(self) -> int:
        """Return how many items are kept."""
        return len(self._new) + len(self._said)

    def put(self, body: bytes, now: int) -> None:
        """Take an item that came in a round; of too many one gives way, first of those that were given.

        Raises `Refusal` where it has no room in a block, or is empty.
        """
        if not 0 < len(body) <= MAX_LANE_ITEM:
            raise Refusal(f"an item of a lane has 1 to {MAX_LANE_ITEM} bytes")
        if len(self) >= MAX_LANE_ITEMS:
            (self._said or self._new).popleft()
        self._new.append(_Item(body, now))

    def restore(self, body: bytes, came: int) -> None:
        """Take back an item that came before a restart; the last of them is said first, after what is new.

        Nobody knows any more which were said, and what came last an owner lacks most likely.
        """
        self._said.appendleft(_Item(body, came))

    def fill(self, now: int) -> bytes:
        """Return the `LANE_ROOM` bytes of a round: items and zeros, each item once."""
        filled, again = b"", []
        while item := self._next(now, LANE_ROOM - len(filled)):
            filled += _SIZE.pack(len(item.body)) + item.body
            again.append(item)
        self._said.extend(again)
        return filled.ljust(LANE_ROOM, b"\0")

    def _next(self, now: int, room: int) -> _Item | None:
        for queue in (self._new, self._said):
            while queue and now - queue[0].came >= self._days:
                queue.popleft()
            if queue:
                fits = _SIZE.size + len(queue[0].body) <= room
                return queue.popleft() if fits else None
        return None


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
