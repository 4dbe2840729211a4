"""What a broker has passed on lately: to which of its children each message went.

A message that comes again is for those alone whom it has not gone to: since then some may have asked for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set

from hushcast_protocol.base.wire import PublicKey

MAX_PASSED_ON = 262_144  # messages and children, some 30 MB; of what came before, somebody may get two


class RecentForwards:
    """A bounded memory; the oldest messages are forgotten first."""

    def __init__(self) -> None:
        self._children: OrderedDict[bytes, set[PublicKey]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        """Return how much is remembered: a message counts one, and each child that it went to."""
        return self._count

    def knows(self, message: bytes) -> bool:
        """Tell whether a message came before."""
        return message in self._children

    def fresh(self, message: bytes, children: Set[PublicKey]) -> set[PublicKey]:
        """Return those of the children that a message has not gone to; it goes there now."""
        before = self._children.get(message)
        if before is None:
            before = self._children[message] = set()
            self._count += 1
        found = set(children) - before
        before |= found
        self._count += len(found)
        while self._count > MAX_PASSED_ON and len(self._children) > 1:
            _, gone = self._children.popitem(last=False)
            self._count -= 1 + len(gone)
        return found
