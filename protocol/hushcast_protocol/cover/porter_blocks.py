"""A porter's blocks for one daemon: one list of its third a round, kept while the daemon is away."""

from __future__ import annotations

from collections import deque

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.cover.cover_frames import BLOCK_DAYS
from hushcast_protocol.cover.cover_rules import CoverRules

MAX_BLOCKS_KEPT = 432  # rounds of one daemon; 1.8 MB: three days of rounds of 600 s
MAX_LISTS_WAITING = 4  # of one daemon, for the ends of rounds: one comes a round, now and then a little late


class PorterBlocks:
    """Which list goes into which round's blocks, and for which rounds there are some."""

    def __init__(self, rules: CoverRules, now: int) -> None:
        self._waiting: deque[tuple[int, bytes]] = deque(maxlen=MAX_LISTS_WAITING)
        self._last = -1  # the round of the list that came last
        self._kept = min(rules.rounds_in(BLOCK_DAYS), MAX_BLOCKS_KEPT)
        self._closed = now - 1  # the last round whose blocks are settled

    def take(self, listed: int, sealed: bytes) -> None:
        """Take the list of a round; of too many the oldest gives way, as one that a later one went past.

        Raises `DecodeError` where it is of the same round as the one before.
        """
        if listed == self._last:
            raise DecodeError("a list of receipts comes twice")
        if listed < self._last:
            return
        self._last = listed
        self._waiting.append((listed, sealed))

    def close(self, now: int) -> tuple[int, bytes] | None:
        """Return the list that the blocks of the round that ends have, and of which round it is, if any."""
        self._closed = now
        return self._waiting.popleft() if self._waiting else None

    def asked_for(self, since: int, until: int) -> range:
        """Return the rounds from `since` to before `until` whose blocks a daemon is given."""
        return range(max(since, self.oldest), min(until, self._closed + 1))

    @property
    def oldest(self) -> int:
        """The oldest round whose blocks are kept."""
        return self._closed + 1 - self._kept
