"""The central system: one server, a proxy of each role, and participants that are clients (VB §5)."""

from __future__ import annotations

import trio

from hushcast_central.counters import PROXY_COUNTERS, SERVER_COUNTERS
from hushcast_central.proxy.daemon import CentralProxy, ProxyParts
from hushcast_central.server.daemon import CentralServer, ServerKeys, ServerParts
from hushcast_node.carrier_parts import CentralParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import PROXY_ROLES, CentralNetwork, Proxy, ProxyRole
from hushcast_protocol.central.profile import CENTRAL_PROFILES
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

LINKED_WITHIN = 120.0  # virtual seconds until both proxies have their links to the server


async def start_central(world: MachineWorld, nursery: trio.Nursery) -> ModelledNetwork:
    """Start a server, both proxies, which keep their links to it, and all participants."""
    return ModelledNetwork(await _Central(world).start(nursery))


class _Central:
    def __init__(self, world: MachineWorld) -> None:
        self._world = world
        draw = world.env.randomness
        self._profile = CENTRAL_PROFILES[world.scene.profile]
        self._keys = ServerKeys(Seed.draw(draw), SealingKey.draw(draw), Scalar.draw(draw))
        self._network = CentralNetwork(
            "comparison",
            world.scene.profile,
            EPOCH_SECONDS,
            self._keys.seed.public(),
            self._keys.sealing.public(),
        )
        self._seeds = {role: Seed.draw(draw) for role in PROXY_ROLES}

    async def start(self, nursery: trio.Nursery) -> list[MachineUser]:
        server = await self._start_server(nursery)
        proxies = [await self._start_proxy(role, server, nursery) for role in PROXY_ROLES]
        server.replace_proxies(tuple(proxies))
        with trio.fail_after(LINKED_WITHIN):
            while len(server.connected()) < len(proxies):  # noqa: ASYNC110 - a mock clock makes waiting free
                await trio.sleep(1)  # virtual seconds
        users = [self._user(number, proxies) for number in range(self._world.scene.nodes)]
        for user in users:
            await nursery.start(live, user.daemon.run, user.machine)
        await until_ready(users)
        return users

    async def _start_server(self, nursery: trio.Nursery) -> CentralServer:
        world = self._world
        machine, transport = world.machine("server")
        parts = ServerParts(
            self._network,
            self._keys,
            Seed.draw(world.env.randomness),
            (),
            self._profile,
            world.environment("server"),
            transport,
            MemoryStore(),
            Counters(SERVER_COUNTERS),
            NoTracer(),
        )
        server = CentralServer(parts)
        await nursery.start(live, server.run, machine)
        return server

    async def _start_proxy(self, role: ProxyRole, server: CentralServer, nursery: trio.Nursery) -> Proxy:
        world = self._world
        machine, transport = world.machine(f"proxy for {role}")
        parts = ProxyParts(
            self._network,
            self._seeds[role],
            Seed.draw(world.env.randomness),
            role,
            server.address,
            world.environment(role),
            transport,
            MemoryStore(),
            Counters(PROXY_COUNTERS),
            NoTracer(),
        )
        proxy = CentralProxy(parts)
        await nursery.start(live, proxy.run, machine)
        return Proxy(self._seeds[role].public(), proxy.address, role)

    def _user(self, number: int, proxies: list[Proxy]) -> MachineUser:
        world = self._world
        machine, transport = world.machine(f"participant-{number}")
        parts = NodeParts(
            CentralParts(self._network, self._profile, proxies),
            world.environment(machine.name),
            transport,
            MemoryStore(),
            derive=world.derive,
            probes_an_epoch=0.0,
        )
        return MachineUser(NodeDaemon(parts), machine)
