"""The backlog of a next hop: what only the spool holds, and from where on it is read back.

It is read *anew*, from the first item on, where the spool may hold items before the last one read: at the
beginning of a backlog, after a restart, where a link ended with items in its window, where the hop counted as
away, and when it is time to retry what was unrouted. Memory is to be empty then, for the spool holds what
memory does. Else a backlog is read on behind the last item read, so that the window stays full.
"""

from __future__ import annotations

from typing import Generic

from hushcast_protocol.base.link.hop_link import ItemT
from hushcast_protocol.base.link.hop_values import BacklogState, ReadBack


class SpoolBacklog(Generic[ItemT]):
    """What a hop machine knows of the spool, which it does not see."""

    # There is one for each link, and most are idle.
    __slots__ = ("_is_stale", "_read_to", "is_anew", "state")

    def __init__(self) -> None:
        """Begin with nothing in the spool."""
        self.state = BacklogState.NONE
        self.is_anew = True
        """Whether the next read begins at the first item."""
        self._is_stale = False  # items were spooled since the spool was asked
        self._read_to: ItemT | None = None

    def more(self) -> None:
        """Note that the spool holds something that memory does not."""
        self.state = self.state or BacklogState.SPOOLED
        self._is_stale = True

    def anew(self) -> None:
        """Note that what the spool holds may stand before the last item read."""
        self.more()
        self.is_anew = True

    def move(self) -> None:
        """Begin to move items to other next hops, which ends with `end`."""
        self.state, self._is_stale = BacklogState.MOVING, False

    def read(self) -> ReadBack[ItemT]:
        """Begin to read, which ends with `end`, and then `took` for what goes into memory."""
        if self.is_anew:
            self.is_anew, self._read_to = False, None
        self.state, self._is_stale = BacklogState.READING, False
        return ReadBack(self._read_to)

    def end(self, found: bool) -> None:
        """Hear what the spool had when it was asked: what was spooled since, it has still."""
        self.state = BacklogState.SPOOLED if found or self._is_stale else BacklogState.NONE
        if not self.state:
            self.is_anew, self._read_to = True, None

    def took(self, last: ItemT) -> None:
        """Note the last item read that memory has."""
        self._read_to = last
