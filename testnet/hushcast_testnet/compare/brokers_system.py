"""A network of brokers: a root, inner and edge brokers, and participants that are clients of these."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from hushcast_brokers.broker.daemon import Broker, BrokerParts
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_node.carrier_parts import BrokersParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerRole
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.counters import Counters
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer
from hushcast_testnet.compare.modelled_network import (
    EPOCH_SECONDS,
    MachineUser,
    MachineWorld,
    ModelledNetwork,
    live,
    until_ready,
)

CLIENTS, EDGES = 25, 5  # participants of an edge broker, edge brokers below an inner one, at most
LINKED_WITHIN = 120.0  # virtual seconds until each broker has its link to its parent


async def start_brokers(world: MachineWorld, nursery: trio.Nursery) -> ModelledNetwork:
    """Start all brokers, which keep their links to their parents, and all participants."""
    users = await _Brokers(world).start(nursery)
    if world.scene.attached:
        await _attach(users)
    return ModelledNetwork(users)


async def _attach(users: list[MachineUser]) -> None:
    """Have everybody subscribe to something that is not measured: links to edge brokers are open then."""
    async with trio.open_nursery() as nursery:
        for user in users:
            nursery.start_soon(_subscribe, user)


async def _subscribe(user: MachineUser) -> None:
    user.machine.run_here()
    await user.daemon.service.subscribe(Interest(parse_topic("something else")))


@dataclass(frozen=True)
class _Place:
    """A broker's place in the tree, and what it alone has."""

    name: str
    role: BrokerRole
    parent: _Place | None
    seed: Seed
    service: Seed


class _Brokers:
    def __init__(self, world: MachineWorld) -> None:
        self._world = world
        edges = -(-world.scene.nodes // CLIENTS)
        root = self._place("root", "root", None)
        inner = [self._place(f"inner-{number}", "inner", root) for number in range(-(-edges // EDGES))]
        self._edges = [
            self._place(f"edge-{number}", "edge", inner[number % len(inner)]) for number in range(edges)
        ]
        self._places = [root, *inner, *self._edges]
        self._address = memory_address(root.service.public())
        self._network = BrokersNetwork("comparison", "clear", EPOCH_SECONDS, root.seed.public())

    async def start(self, nursery: trio.Nursery) -> list[MachineUser]:
        brokers = [await self._start_broker(place, nursery) for place in self._places]
        with trio.fail_after(LINKED_WITHIN):
            while not all(one.parent_state in (None, "open") for one in brokers):  # noqa: ASYNC110
                await trio.sleep(1)  # virtual seconds: a mock clock makes waiting free
        users = [self._user(number) for number in range(self._world.scene.nodes)]
        for user in users:
            await nursery.start(live, user.daemon.run, user.machine)
        await until_ready(users)
        return users

    def _place(self, name: str, role: BrokerRole, parent: _Place | None) -> _Place:
        draw = self._world.env.randomness
        return _Place(name, role, parent, Seed.draw(draw), Seed.draw(draw))

    async def _start_broker(self, place: _Place, nursery: trio.Nursery) -> Broker:
        world = self._world
        machine, transport = world.machine(place.name)
        broker = Broker(
            BrokerParts(
                self._network,
                place.seed,
                place.service,
                self._address if place.parent is not None else None,
                self._seats() if place.parent is None else None,
                OPEN,
                None,
                world.environment(place.name),
                transport,
                MemoryStore(),
                Counters(BROKER_COUNTERS),
                NoTracer(),
            )
        )
        await nursery.start(live, broker.run, machine)
        return broker

    def _seats(self) -> tuple[BrokerPosition, ...]:
        return tuple(
            BrokerPosition(
                one.seed.public(), memory_address(one.service.public()), one.role, one.parent.seed.public()
            )
            for one in self._places
            if one.parent is not None
        )

    def _user(self, number: int) -> MachineUser:
        world = self._world
        machine, transport = world.machine(f"participant-{number}")
        edge = self._edges[number % len(self._edges)]
        parts = NodeParts(
            BrokersParts(self._network, self._address, edge.seed.public()),
            world.environment(machine.name),
            transport,
            MemoryStore(),
            derive=world.derive,
            probes_an_epoch=0.0,
        )
        return MachineUser(NodeDaemon(parts), machine)
