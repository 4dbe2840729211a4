"""Members of an in-process network of brokers: root and other brokers, a tomography service, nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import trio

from hushcast_brokers.broker.daemon import Broker, BrokerParts
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_brokers.tomography.broker_statements import TomographyAddress
from hushcast_brokers.tomography.counters import TOMOGRAPHY_COUNTERS
from hushcast_brokers.tomography.daemon import TomographyDaemon, TomographyParts
from hushcast_brokers.tomography.section import CAP
from hushcast_node.carrier_parts import BrokersParts
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerRole, BrokerTree
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_runtime.counters import Counters
from hushcast_runtime.transports.memory import CallAt
from hushcast_testnet.simulations.broker_trees import BrokerTreeShape, fanned, small
from hushcast_testnet.simulations.lives import Life, SimulatedWorld, UserLife
from hushcast_testnet.simulations.one_community import OneCommunity
from hushcast_testnet.simulations.scenario import BEGIN, EPOCH_SECONDS, Scenario


@dataclass(frozen=True)
class BrokerKeys:
    """A broker's place, and what it alone has."""

    name: str
    role: BrokerRole
    parent: str
    seed: Seed
    service: Seed


class TomographyKeys(NamedTuple):
    """What a tomography service alone has."""

    seed: Seed
    service: Seed

    @property
    def address(self) -> TomographyAddress:
        """How brokers reach it, and for how many sources it hears each of them."""
        return TomographyAddress(self.seed.public(), memory_address(self.service.public()), CAP)


class BrokersWorld(SimulatedWorld):
    """The shared state of one network: its key, and the brokers that the root lists."""

    def __init__(self, scenario: Scenario, call_at: CallAt) -> None:
        super().__init__(scenario.seed, BEGIN, EPOCH_SECONDS, scenario.traces, call_at)
        draw = self.env.randomness
        self.shape = _shape(scenario)
        self.brokers = [
            BrokerKeys(name, role, parent, Seed.draw(draw), Seed.draw(draw))
            for name, role, parent in self.shape.brokers
        ]
        self.keys: dict[str, PublicKey] = {one.name: one.seed.public() for one in self.brokers}
        self.root = memory_address(self.brokers[0].service.public())
        self.network = BrokersNetwork("simulation", scenario.privacy.text, EPOCH_SECONDS, self.keys["root"])

        self.community = OneCommunity(draw) if scenario.privacy.is_sealed else None
        self.tomography = TomographyKeys(Seed.draw(draw), Seed.draw(draw)) if scenario.tomography else None

    @property
    def seats(self) -> tuple[BrokerPosition, ...]:
        """The places of all brokers but the root."""
        return tuple(
            BrokerPosition(
                self.keys[one.name],
                memory_address(one.service.public()),
                one.role,
                self.keys[one.parent],
            )
            for one in self.brokers[1:]
        )


def _shape(scenario: Scenario) -> BrokerTreeShape:
    if scenario.fan_out is None:
        return small(scenario.nodes, scenario.edges)
    levels = scenario.privacy.layers if scenario.privacy.model == "full" else 1
    return fanned(scenario.nodes, scenario.fan_out, levels)


class BrokerLife(Life):
    """A broker, through all its lives."""

    def __init__(self, world: BrokersWorld, keys: BrokerKeys) -> None:
        super().__init__(keys.name, Counters(BROKER_COUNTERS))
        self._world = world
        self._keys = keys
        self._env = world.environment(self.name)
        self._tracer = world.tracer(self.name, keys.seed.public().hex(), self._env)
        self._broker: Broker | None = None

    @property
    def is_linked(self) -> bool:
        """Tell whether it is the root, or its parent has it as its child."""
        return self._broker is not None and self._broker.parent_state in (None, "open")

    @property
    def keys(self) -> BrokerKeys:
        """Its place, and what it alone has."""
        return self._keys

    @property
    def tree(self) -> BrokerTree | None:
        """The tree that it holds."""
        return self._broker.tree if self._broker is not None else None

    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        world, keys = self._world, self._keys
        is_root = keys.role == "root"
        transport = world.wires.transport()
        self._broker = Broker(
            BrokerParts(
                world.network,
                keys.seed,
                keys.service,
                None if is_root else world.root,
                world.seats if is_root else None,
                OPEN,
                None,
                self._env,
                transport,
                self._store,
                self.counters,
                self._tracer,
                tomography=world.tomography.address if world.tomography is not None else None,
                keepers=frozenset({world.community.key} if is_root and world.community else ()),
            )
        )
        await self._run(self._broker.run, transport, task_status)


class TomographyLife(Life):
    """The tomography service, through all its lives; what brokers stated it forgets with each."""

    def __init__(self, world: BrokersWorld, keys: TomographyKeys) -> None:
        super().__init__("tomography", Counters(TOMOGRAPHY_COUNTERS))
        self._world = world
        self._keys = keys
        self._env = world.environment(self.name)

    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        world, (seed, service) = self._world, self._keys
        transport = world.wires.transport()
        parts = TomographyParts(
            world.network,
            seed,
            service,
            world.root,
            CAP,
            self._env,
            transport,
            self._store,
            self.counters,
        )
        await self._run(TomographyDaemon(parts).run, transport, task_status)


class BrokersUserLife(UserLife):
    """A node, through all its lives, at one edge broker."""

    def __init__(self, world: BrokersWorld, name: str, edge: PublicKey) -> None:
        of = world.community
        member, community = (of.member(), of.key) if of is not None else (None, None)
        super().__init__(world, name, BrokersParts(world.network, world.root, edge, member, community))
        self.edge = edge
