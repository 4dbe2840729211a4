"""A tree of brokers with real daemons that publish and subscribe."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import trio
from small_network import ONE, READY_WITHIN, Ear, Process, derive, until
from small_tree import SIX, SmallTree, shape

from hushcast_brokers.client.brokers_route import BrokersRoute
from hushcast_node.carrier_parts import BrokersParts
from hushcast_node.counters import BROKERS_NODE
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerRole
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.memory import MemoryNetwork


class Node(Process):
    """A daemon; its store outlives it."""

    network: TreeOfDaemons  # type: ignore[assignment]
    daemon: NodeDaemon

    def __init__(self, network: TreeOfDaemons, name: str) -> None:
        super().__init__(network, name)  # type: ignore[arg-type]
        self.store: Any = MemoryStore()
        self.counters: list[Counters] = []
        self.edge: bytes | None = None
        """The one edge broker that its configuration allows."""
        self.member = Seed.draw(network.environment(f"{name} member").randomness)
        """Its key in communities."""
        self.community: bytes | None = None

    def count(self, name: str) -> int:
        """What a counter says over all lives."""
        return sum(counters[name] for counters in self.counters)

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        network = self.network
        self.counters.append(Counters(BROKERS_NODE))
        carrier = BrokersParts(network.net, network.root.address, self.edge, self.member, self.community)
        parts = NodeParts(
            carrier,
            env,
            transport,
            self.store,
            network.tracer,
            derive=derive,
            probes_an_epoch=network.probes_an_epoch,
        )
        self.daemon = self.wired(parts)
        # As Tor's consensus vouches for the time; there is no roster that would.
        self.daemon.clock.witness((env.now() - 3600, env.now() + 3600))
        await self.daemon.run(task_status=task_status)

    def wired(self, parts: NodeParts) -> NodeDaemon:
        """Return the daemon of the life that begins."""
        return NodeDaemon(parts, self.counters[-1])

    async def start(self) -> None:
        await super().start()
        if self.network.waits:
            await until(lambda: self.daemon.ready, READY_WITHIN, f"{self.name} is ready")

    @property
    def routes(self) -> list[BrokersRoute]:
        return self.daemon.brokers.routes.held

    async def listen(self, topic: Any = ONE, where: str = "", terms: Any = None) -> Ear:
        """Subscribe, and collect what comes."""
        interest = Interest(topic, parse_where(where, topic.attributes))
        return Ear(self.network, await self.daemon.service.subscribe(interest, terms=terms))  # type: ignore[arg-type]


async def sent(node: Node, payload: bytes, topic: Any = ONE, **values: Any) -> None:
    """Publish, and wait for the receipt."""
    await node.daemon.service.publish(topic, Content(payload, values))


class TreeOfDaemons(SmallTree):
    """The brokers, and what tests ask of the daemons."""

    def __init__(
        self, nursery: trio.Nursery, seed: int, probes_an_epoch: float = 0.0, profile: str = "clear"
    ) -> None:
        super().__init__(nursery, seed, None, profile)
        self.probes_an_epoch = probes_an_epoch
        self.waits = True
        self.nodes: list[Node] = []

    @property
    def seats(self) -> tuple[BrokerPosition, ...]:
        """Those of brokers whose address is known: over sockets only after their first start."""
        members = [member for member in self.members if member.parent is not None]
        is_memory = isinstance(self.wires, MemoryNetwork)
        return tuple(member.seat for member in members if is_memory or member.lives)

    async def up(self) -> None:
        for member in self.members:
            await member.start()
        await self.list_all()
        await self.linked()

    def node(self, name: str) -> Node:
        """Make a daemon that is not started yet."""
        self.nodes.append(Node(self, name))
        return self.nodes[-1]

    def count_at_nodes(self, name: str) -> int:
        return sum(node.count(name) for node in self.nodes)


@asynccontextmanager
async def tree_of_daemons(
    count: int = 2,
    rows: Iterable[tuple[str, BrokerRole, str]] = SIX,
    seed: int = 1,
    probes_an_epoch: float = 0.0,
    profile: str = "clear",
) -> AsyncIterator[TreeOfDaemons]:
    """A network that is up; at the end nobody may have met an error of its own program."""
    async with trio.open_nursery() as nursery:
        network = TreeOfDaemons(nursery, seed, probes_an_epoch, profile)
        shape(network, rows)
        await network.up()
        for number in range(count):
            await network.node(f"node-{number}").start()
        yield network
        assert network.count("internal_errors") + network.count_at_nodes("internal_errors") == 0
        nursery.cancel_scope.cancel()
