"""A tree of brokers with daemons, in communities."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import trio
from broker_daemons import Node, TreeOfDaemons
from small_network import until
from small_tree import Member, shape

from hushcast_protocol.base.crypto.key_agreement import agreement_public
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.brokers.broker_tree import BrokerRole
from hushcast_protocol.brokers.community.charter import sign_charter
from hushcast_protocol.brokers.frames import NewCharter

Anybody = Member | Node


class Keeper:
    """Who signs a community's charters, and hands them in at the root."""

    def __init__(self, network: CommunityTree, name: str) -> None:
        self.network = network
        self.random = network.environment(f"keeper {name}").randomness
        self.seed = Seed.draw(self.random)
        self.key = self.seed.public()
        self.members: set[bytes] = set()
        self.epoch = 0

    def signed(self, begins: float | None = None) -> Signed:
        """Sign the next epoch's charter."""
        self.epoch += 1
        at = self.network.now if begins is None else begins
        keys = [agreement_public(key) for key in self.members]
        return sign_charter(self.seed, self.network.net.id, self.epoch, int(at), keys, self.random)

    async def hand_in(self, signed: Signed) -> str:
        """Return the root's verdict."""
        talk = await self.network.connect(self.network.root)
        receipt = await talk.ask(NewCharter(signed))
        await talk.close()
        return str(receipt.verdict)

    async def admit(self, *some: Anybody, lead: float = 0.0) -> None:
        """Begin another epoch with some more."""
        self.members |= {key_of(one) for one in some}
        assert await self.hand_in(self.signed(self.network.now + lead)) == "accepted"

    async def expel(self, *some: Anybody, lead: float = 0.0) -> None:
        """Begin another epoch without some."""
        self.members -= {key_of(one) for one in some}
        assert await self.hand_in(self.signed(self.network.now + lead)) == "accepted"


def key_of(one: Anybody) -> bytes:
    """The key that charters admit somebody by."""
    return one.key if isinstance(one, Member) else one.member.public()


class CommunityTree(TreeOfDaemons):
    """The brokers, the daemons, and the keepers of communities."""

    def __init__(self, nursery: trio.Nursery, seed: int, communities: int = 1) -> None:
        super().__init__(nursery, seed, profile="community")
        self.keeping = [Keeper(self, str(number)) for number in range(communities)]
        self.keepers = frozenset(keeper.key for keeper in self.keeping)

    async def daemon(self, name: str, keeper: Keeper | None, edge: Member | str | None = None) -> Node:
        """Start a daemon, in a community or none."""
        node = self.node(name)
        node.community = None if keeper is None else keeper.key
        if edge is not None:
            node.edge = self[edge].key if isinstance(edge, str) else edge.key
        await node.start()
        return node

    def member_of(self, node: Node) -> Member:
        """The edge broker that a daemon uses."""
        edge = node.daemon.brokers.edge()
        assert edge is not None
        return next(member for member in self.members if member.key.hex() == edge["broker"])

    async def heard(self, keeper: Keeper) -> None:
        """Wait until all brokers, and the community's daemons that are attached, hold the newest charter."""

        def have() -> bool:
            held = [one.daemon._charters for one in self.members if one.is_up]
            if not all(
                (newest := charters.newest(keeper.key)) is not None and newest.epoch == keeper.epoch
                for charters in held
            ):
                return False
            return all(
                self._knows(one, keeper) for one in self.nodes if one.is_up and one.community == keeper.key
            )

        await until(have, 300.0, "all hold the newest charter")

    def _knows(self, node: Node, keeper: Keeper) -> bool:
        membership = node.daemon.brokers.membership
        assert membership is not None
        newest = membership.charters.newest(keeper.key)
        if newest is not None and (newest.epoch == keeper.epoch or not membership.is_told()):
            return membership.current() is not None or key_of(node) not in keeper.members
        membership.missing()  # ask now
        return False


@asynccontextmanager
async def community_tree(
    rows: Iterable[tuple[str, BrokerRole, str]], communities: int = 1, seed: int = 1
) -> AsyncIterator[CommunityTree]:
    """A network that is up; at the end nobody may have met an error of its own program."""
    async with trio.open_nursery() as nursery:
        network = CommunityTree(nursery, seed, communities)
        shape(network, rows)
        await network.up()
        yield network
        assert network.count("internal_errors") + network.count_at_nodes("internal_errors") == 0
        assert network.count("parent_faults") + network.count_at_nodes("parent_faults") == 0
        nursery.cancel_scope.cancel()
