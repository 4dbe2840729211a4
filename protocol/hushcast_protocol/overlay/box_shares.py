"""The shares of boxes in their host's room, and which messages give way where it is short.

A box that is full gives way itself, its oldest first. Where all together take too much, the box that takes
most does. So whoever fills boxes loses what is theirs: at most `MAX_BOXES` share `MAX_ALL_BOXES` bytes, hence
the one that takes most has more than `SMALL_BOX` then, and a box that never had that much loses nothing.
"""

from __future__ import annotations

MAX_BOX = 4 * 1024 * 1024  # bytes of the spool for one box: 3,500 of the smallest messages, a day's
MAX_ALL_BOXES = 128 * 1024 * 1024  # bytes of the spool for all boxes of one host
SMALL_BOX = 100 * 1024  # bytes that a box may have whatever others do
GIVEN_AT_ONCE = 16 * 1024  # bytes that a box gives until it is looked which takes most: to look takes 40 µs
LOOKS_AT_ONCE = 64  # of these looks in one step, with all that then gives way: 10 ms
MAX_BOXES = MAX_ALL_BOXES // SMALL_BOX  # kept by one host: 1,310


class BoxShares:
    """What waits in the boxes of one host: the place of each message, in order, and the bytes it takes."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, dict[bytes, int]] = {}  # by box, by place
        self._sizes: dict[bytes, int] = {}  # of boxes in which something waits
        self._full: dict[bytes, None] = {}  # those over their bound
        self._size = 0

    @property
    def size(self) -> int:
        """The bytes of all."""
        return self._size

    def size_of(self, box: bytes) -> int:
        """Return the bytes that wait in one box."""
        return self._sizes.get(box, 0)

    def waiting(self, box: bytes) -> list[bytes]:
        """Return the places of what waits in a box, from the oldest on."""
        return list(self._waiting.get(box, ()))

    def add(self, box: bytes, place: bytes, size: int) -> None:
        """Note a message that has come."""
        self._waiting.setdefault(box, {})[place] = size
        self._sizes[box] = self._sizes.get(box, 0) + size
        self._size += size
        if self._sizes[box] > MAX_BOX:
            self._full[box] = None

    def remove(self, box: bytes, place: bytes) -> None:
        """Note that a message does not wait any more, if it did."""
        places = self._waiting.get(box)
        size = places.pop(place, None) if places is not None else None
        if places is None or size is None:
            return
        self._size -= size
        self._sizes[box] -= size
        if self._sizes[box] <= MAX_BOX:
            self._full.pop(box, None)
        if not places:
            del self._waiting[box], self._sizes[box]

    def over(self) -> list[tuple[bytes, bytes]]:
        """Return what gives way next for what was added, as box and place; it is removed.

        It is asked until that is nothing: each time is one step of some milliseconds.
        """
        gone: list[tuple[bytes, bytes]] = []
        for _ in range(LOOKS_AT_ONCE):
            if self._full:
                box, most = next(iter(self._full)), MAX_BOX
            elif self._size > MAX_ALL_BOXES:
                box = max(self._sizes, key=self._sizes.__getitem__)
                most = self._sizes[box] - (self._size - MAX_ALL_BOXES)
            else:
                break
            least = max(0, most, self._sizes[box] - GIVEN_AT_ONCE)
            while self.size_of(box) > least:
                gone.append(self._pop(box))
        return gone

    def _pop(self, box: bytes) -> tuple[bytes, bytes]:
        oldest = next(iter(self._waiting[box]))
        self.remove(box, oldest)
        return box, oldest
