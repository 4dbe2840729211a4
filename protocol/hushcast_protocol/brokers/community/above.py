"""What one broker shows above of what it holds: sealed anew to each community, or as it came.

What covers the rest is found in each community apart, as whoever is above may be in one of them alone.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.community.epochs import Epoch
from hushcast_protocol.brokers.community.sealing import Sealed, seal_filter
from hushcast_protocol.brokers.community.table import Given
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.poset import Poset
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.brokers.table import Source
from hushcast_protocol.brokers.words import from_outside


class SealedChanges(NamedTuple):
    """How what is shown differs from before; no item is in both."""

    show: list[Sealed]
    withdraw: list[bytes]
    """By name."""


class Above:
    """What one broker shows its parent."""

    def __init__(self, sealer: PublicKey) -> None:
        """`sealer` is the broker's key."""
        self._sealer = sealer
        self._posets: dict[Epoch, Poset] = {}
        self._names: Counter[bytes] = Counter()  # how often each item is shown
        self._items: dict[bytes, Sealed] = {}
        self._before: dict[bytes, Sealed | None] = {}  # what the parent has of those that changed

    def add(self, epoch: Epoch | None, given: Given, source: Source) -> None:
        """Show what somebody asked for, unless more is shown that covers it; `epoch` is the item's."""
        if given.filter is None:
            self._show(given.sealed)
        else:
            assert epoch is not None, "it was opened under it"
            self._posets.setdefault(epoch, Poset()).insert(given.filter, source)

    def remove(self, epoch: Epoch | None, given: Given, source: Source) -> None:
        """Show it no more."""
        if given.filter is None:
            self._hide(given.sealed.name)
        else:
            assert epoch is not None, "it was opened under it"
            self._posets[epoch].remove(given.filter, source)

    def change(self, epoch: Epoch, changes: RootChanges) -> None:
        """Show what changed of filters that nothing else covers in a community."""
        for one in changes.shown:
            self._show(self._sealed(epoch, one))
        for one in changes.withdrawn:
            self._hide(self._sealed(epoch, one).name)

    def take_changes(self) -> SealedChanges:
        """Return what differs from the last time."""
        for epoch, poset in self._posets.items():
            self.change(epoch, poset.take_changes())
        for epoch in [epoch for epoch, poset in self._posets.items() if not len(poset)]:
            del self._posets[epoch]
        show: list[Sealed] = []
        withdraw: list[bytes] = []
        for name, before in self._before.items():
            now = self._items.get(name)
            if before is None and now is not None:
                show.append(now)
            elif before is not None and now is None:
                withdraw.append(name)
        self._before = {}
        return SealedChanges(show, withdraw)

    def _sealed(self, epoch: Epoch, given: Filter) -> Sealed:
        return seal_filter(epoch, self._sealer, from_outside(given))

    def _show(self, sealed: Sealed) -> None:
        name = sealed.name
        self._before.setdefault(name, self._items.get(name))
        self._names[name] += 1
        self._items[name] = sealed

    def _hide(self, name: bytes) -> None:
        self._before.setdefault(name, self._items.get(name))
        self._names[name] -= 1
        if not self._names[name]:
            del self._names[name], self._items[name]
