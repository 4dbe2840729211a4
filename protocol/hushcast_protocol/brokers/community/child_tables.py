"""What brokers below one asked for, in all communities: looked up in its table, and shown above."""

from __future__ import annotations

from collections.abc import Mapping, Set

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.community.community_epochs import CommunityEpochs, MemberEpoch
from hushcast_protocol.brokers.community.community_table import CommunityTable, TableItem
from hushcast_protocol.brokers.community.parent_view import ParentView

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
        given = self.table.of(child)[name]
        self._above.remove(self._epochs.under(given.sealed.label), given, (child, name))
        self.table.take(child, name)

    def learn(self, epoch: MemberEpoch) -> list[ChildItemName]:
        """Open what came before its key, which is open now; return what was sealed wrongly, and is gone."""
        gone: list[ChildItemName] = []
        closed_ones = [one for one in self.table.under(epoch.label) if one[2].filter is None]
        for child, name, closed in closed_ones:
            self._above.remove(None, closed, (child, name))
            self.table.take(child, name)
            try:
                given = self.table.read(closed.sealed)
            except Refusal:
                gone.append((child, name))
            else:
                self.put(child, name, given)
        return gone

    def forget(self, epoch: MemberEpoch) -> list[ChildItemName]:
        """Forget all that was asked for under an epoch that is over; return what that was."""
        gone = list(self.table.under(epoch.label))
        for child, name, given in gone:
            self._above.remove(epoch, given, (child, name))
            self.table.take(child, name)
        return [(child, name) for child, name, _ in gone]
