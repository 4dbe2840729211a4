"""What one broker shows above of what it holds: sealed anew to each community, or as it came.

What covers the rest is found in each community apart, as whoever is above may be in one of them alone.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.clear_words import from_outside
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.brokers.community.community_table import TableItem
from hushcast_protocol.brokers.community.sealed_filter import SealedFilter, seal_filter
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.poset import Poset
from hushcast_protocol.brokers.roots import ROOTS_AT_ONCE, RootChanges


class SealedChanges(NamedTuple):
    """How what is shown differs from before; no item is in both."""

    show: list[SealedFilter]
    withdraw: list[bytes]
    """By name."""
    is_all_shown: bool
    has_more: bool


class ParentView:
    """What one broker shows its parent."""

    def __init__(self, sealer: PublicKey) -> None:
        """`sealer` is the broker's key."""
        self._sealer = sealer
        self._posets: dict[bytes, tuple[MemberEpoch, Poset]] = {}  # by label, also of an epoch that is over
        self._names: Counter[bytes] = Counter()  # how often each item is shown
        self._items: dict[bytes, SealedFilter] = {}
        self._before: dict[bytes, SealedFilter | None] = {}  # what the parent has of those that changed

    def add(self, epoch: MemberEpoch | None, given: TableItem, source: Source) -> None:
        """Show what somebody asked for, unless more is shown that covers it; `epoch` is the item's."""
        if given.filter is None:
            self._show(given.sealed)
        else:
            assert epoch is not None, "it was opened under it"
            _, poset = self._posets.setdefault(epoch.label, (epoch, Poset()))
            poset.insert(given.filter, source)

    def remove(self, given: TableItem, source: Source) -> None:
        """Show it no more."""
        if given.filter is None:
            self._hide(given.sealed.name)
        else:
            _, poset = self._posets[given.sealed.label]
            poset.remove(given.filter, source)

    def change(self, epoch: MemberEpoch, changes: RootChanges) -> None:
        """Show what changed of filters that nothing else covers in a community."""
        for one in changes.shown:
            self._show(self._sealed(epoch, one))
        for one in changes.withdrawn:
            self._hide(self._sealed(epoch, one).name)

    def take_changes(self) -> SealedChanges:
        """Return what differs from the last time, as much as one step has time for (`roots.RootChanges`)."""
        left, taken = ROOTS_AT_ONCE, list[RootChanges]()
        for label, (epoch, poset) in list(self._posets.items()):
            changes = poset.take_changes(left)
            self.change(epoch, changes)
            taken.append(changes)
            left -= len(changes.shown) + len(changes.withdrawn)
            if not len(poset) and not changes.has_more:
                del self._posets[label]
        show: list[SealedFilter] = []
        withdraw: list[bytes] = []
        for name, before in self._before.items():
            now = self._items.get(name)
            if before is None and now is not None:
                show.append(now)
            elif before is not None and now is None:
                withdraw.append(name)
        self._before = {}
        is_all_shown = all(changes.is_all_shown for changes in taken)
        return SealedChanges(show, withdraw, is_all_shown, any(changes.has_more for changes in taken))

    def _sealed(self, epoch: MemberEpoch, given: Filter) -> SealedFilter:
        return seal_filter(epoch, self._sealer, from_outside(given))

    def _show(self, sealed: SealedFilter) -> None:
        name = sealed.name
        self._before.setdefault(name, self._items.get(name))
        self._names[name] += 1
        self._items[name] = sealed

    def _hide(self, name: bytes) -> None:
        self._before.setdefault(name, self._items.get(name))
        self._names[name] -= 1
        if not self._names[name]:
            del self._names[name], self._items[name]
