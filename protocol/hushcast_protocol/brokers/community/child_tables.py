"""What brokers below one asked for, in all communities: looked up in its table, and shown above."""

from __future__ import annotations

from collections.abc import Mapping, Set

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.community.community_epochs import CommunityEpochs
from hushcast_protocol.brokers.community.community_table import CommunityTable, TableItem
from hushcast_protocol.brokers.community.parent_view import ParentView

_AT_ONCE = 16  # items read anew in one step: a millisecond each at most

ChildItemName = tuple[PublicKey, bytes]
"""What a child asked for: whose it is, and its name."""


class ChildTables:
    """The tables of the brokers below one."""

    def __init__(self, epochs: CommunityEpochs, above: ParentView) -> None:
        self.table = CommunityTable(epochs)
        self._epochs = epochs
        self._above = above

    def __len__(self) -> int:
        return len(self.table)

    @property
    def children(self) -> Set[PublicKey]:
        """Those that have asked for anything; not to be kept, as it changes."""
        return self.table.children

    def of(self, child: PublicKey) -> Mapping[bytes, TableItem]:
        """Return what a child has asked for, by name."""
        return self.table.of(child)

    def put(self, child: PublicKey, name: bytes, given: TableItem) -> None:
        """Take what was read (`CommunityTable.read`); a child has one thing under a name."""
        assert name not in self.table.of(child), "a name is of what it names"
        self.table.put(child, name, given)
        self._above.add(self._epochs.under(given.sealed.label), given, (child, name))

    def take(self, child: PublicKey, name: bytes) -> None:
        """Forget what a child asked for under a name; raise `KeyError` where there is nothing."""
        self._above.remove(self.table.of(child)[name], (child, name))
        self.table.take(child, name)

    def settle(self, label: bytes) -> list[ChildItemName]:
        """Read anew some of what is under a label whose epoch has opened, or is over.

        Call it until nothing is stale (`CommunityTable.is_stale`). What was sealed wrongly is forgotten, and
        all that was asked for under an epoch that is over; returns what that was.
        """
        is_over = self._epochs.under(label) is None
        gone: list[ChildItemName] = []
        for child, name, given in self.table.stale(label, _AT_ONCE):
            self.take(child, name)
            try:
                if is_over:
                    raise Refusal("community")
                self.put(child, name, self.table.read(given.sealed))
            except Refusal:
                gone.append((child, name))
        return gone
