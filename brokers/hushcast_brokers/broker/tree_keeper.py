"""A broker's place in the tree: its parent, its children, whom else to ask; and the root, which signs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import trio

from hushcast_brokers.held_tree import HeldTree
from hushcast_brokers.tree_request import BrokerContact
from hushcast_brokers.upstream import Parent
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.network_wire import AnnouncedWire
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerRole, ListedBroker, sign_tree
from hushcast_protocol.brokers.network import BrokersNetwork


class TreeKeeper:
    """What the tree that is held says of one broker."""

    def __init__(self, network: BrokersNetwork, seed: Seed, root: Address | None, held: HeldTree) -> None:
        """`root` is the root's address, by the network's file; none at the root."""
        self._network = network
        self._seed = seed
        self._root = root
        self.held = held
        self.key = seed.public()
        self._signing = trio.Lock()

    @property
    def is_root(self) -> bool:
        """Whether this is the root."""
        return self.key == self._network.root

    @property
    def place(self) -> ListedBroker | None:
        """Its place; none while the tree lacks it, or there is none."""
        tree = self.held.newest
        return tree.brokers.get(self.key) if tree is not None else None

    @property
    def role(self) -> BrokerRole | None:
        """Its role, if it has a place."""
        return self.place.role if self.place is not None else None

    def children(self) -> set[PublicKey]:
        """Return the keys of the brokers directly below."""
        tree = self.held.newest
        if tree is None or self.place is None:
            return set()
        return {broker.key for broker in tree.children(self.key)}

    def is_listed(self, key: PublicKey) -> bool:
        """Tell whether a key is a broker's, here or elsewhere in the tree."""
        return self.held.newest is not None and key in self.held.newest.brokers

    def parent(self) -> Parent | None:
        """Return whom to keep a link to."""
        tree, place = self.held.newest, self.place
        if tree is None or place is None or place.parent is None:
            return None
        above = tree.brokers[place.parent]
        return Parent(BrokerContact(above.key, above.address), self._seed)

    def others(self) -> Sequence[BrokerContact]:
        """Return the brokers above its parent, nearest first, and the root as the network's file has it."""
        if self._root is None:
            return ()
        tree = self.held.newest
        above = tree.above(self.key)[1:] if tree is not None and self.place is not None else []
        found = [BrokerContact(broker.key, broker.address) for broker in above]
        return list(dict.fromkeys([*found, BrokerContact(self._network.root, self._root)]))

    async def sign(
        self,
        seats: Iterable[BrokerPosition],
        address: Address,
        wanted: int | None,
        days_kept: int,
        now: float,
    ) -> None:
        """Have the tree list these brokers below the root, which is at this address.

        And go on to the wire that is wanted, if any is, at a change of day. A new network speaks the newest.
        And say for how many days the root keeps what is published.

        A tree that changes anything is of the next version, and on disk before anybody hears of it. Raises
        `DecodeError` where it is no tree.
        """
        rows = (BrokerPosition(self.key, address, "root", None), *seats)
        async with self._signing:
            before = self.held.newest
            if before is None:
                await self._sign(1, rows, AnnouncedWire(wires.spoken().highest, None, 0), days_kept)
                return
            wire = before.wire.towards(wanted, self._network.calendar.epoch(now))
            is_same = (wire, days_kept) == (before.wire, before.days_kept)
            if not is_same or {_row(broker) for broker in before.brokers.values()} != set(rows):
                await self._sign(before.version + 1, rows, wire, days_kept)

    async def outdo(self) -> None:
        """Sign the same tree as a newer version: somebody has another of this one, which no tree can mend."""
        async with self._signing:
            newest = self.held.newest
            assert newest is not None, "there are two"
            seats = tuple(map(_row, newest.brokers.values()))
            await self._sign(newest.version + 1, seats, newest.wire, newest.days_kept)

    async def _sign(
        self, version: int, seats: Sequence[BrokerPosition], wire: AnnouncedWire, days_kept: int
    ) -> None:
        await self.held.keep(sign_tree(self._seed, self._network, version, seats, wire, days_kept))


def _row(broker: ListedBroker) -> BrokerPosition:
    return BrokerPosition(broker.key, broker.address, broker.role, broker.parent)
