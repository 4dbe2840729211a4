"""Members of an in-process central system: its server, proxies, and nodes."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from hushcast_central.counters import PROXY_COUNTERS, SERVER_COUNTERS
from hushcast_central.proxy.daemon import CentralProxy, ProxyParts
from hushcast_central.server.daemon import CentralServer, ServerKeys, ServerParts
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import CentralNetwork, Proxy, ProxyRole
from hushcast_protocol.central.profile import CENTRAL_PROFILES
from hushcast_runtime.counters import Counters
from hushcast_runtime.transports.memory import CallAt
from hushcast_testnet.layouts import proxy_names
from hushcast_testnet.simulations.lives import Life, SimulatedWorld
from hushcast_testnet.simulations.scenario import BEGIN, EPOCH_SECONDS, Scenario


class CentralWorld(SimulatedWorld):
    """The shared state of one network: its keys, and the proxies that whoever joins it is told."""

    def __init__(self, scenario: Scenario, call_at: CallAt) -> None:
        super().__init__(scenario.seed, BEGIN, EPOCH_SECONDS, scenario.traces, call_at)
        draw = self.env.randomness
        self.profile = CENTRAL_PROFILES[scenario.profile]
        self.keys = ServerKeys(Seed.draw(draw), SealingKey.draw(draw), Scalar.draw(draw))
        self.service = Seed.draw(draw)
        server, sealing = self.keys.seed.public(), self.keys.sealing.public()
        self.network = CentralNetwork("simulation", scenario.profile, EPOCH_SECONDS, server, sealing)
        self.proxies = [
            ProxyKeys(name, role, Seed.draw(draw), Seed.draw(draw))
            for name, role in proxy_names(scenario.proxies)
        ]

    @property
    def listed(self) -> tuple[Proxy, ...]:
        """The proxies, as all others know them."""
        return tuple(
            Proxy(keys.seed.public(), memory_address(keys.service.public()), keys.role)
            for keys in self.proxies
        )


@dataclass(frozen=True)
class ProxyKeys:
    """What a proxy alone has."""

    name: str
    role: ProxyRole
    seed: Seed
    service: Seed


class ServerLife(Life):
    """The server, through all its lives."""

    def __init__(self, world: CentralWorld) -> None:
        super().__init__("server", Counters(SERVER_COUNTERS))
        self._world = world
        self._env = world.environment(self.name)
        self._tracer = world.tracer(self.name, world.keys.seed.public().hex(), self._env)

    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        world = self._world
        transport = world.wires.transport()
        server = CentralServer(
            ServerParts(
                world.network,
                world.keys,
                world.service,
                world.listed,
                world.profile,
                self._env,
                transport,
                self._store,
                self.counters,
                self._tracer,
            )
        )
        await self._run(server.run, transport, task_status)


class ProxyLife(Life):
    """A proxy, through all its lives."""

    def __init__(self, world: CentralWorld, keys: ProxyKeys) -> None:
        super().__init__(keys.name, Counters(PROXY_COUNTERS))
        self._world = world
        self._keys = keys
        self._env = world.environment(self.name)
        self._tracer = world.tracer(self.name, keys.seed.public().hex(), self._env)

    async def _live(self, *, task_status: trio.TaskStatus[None]) -> None:
        world, keys = self._world, self._keys
        transport = world.wires.transport()
        proxy = CentralProxy(
            ProxyParts(
                world.network,
                keys.seed,
                keys.service,
                keys.role,
                memory_address(world.service.public()),
                self._env,
                transport,
                self._store,
                self.counters,
                self._tracer,
            )
        )
        await self._run(proxy.run, transport, task_status)
