"""The tree system: a directory, and participants that all are relays, as VB §4.2 has them."""

from __future__ import annotations

import trio

from hushcast_directory.registry import Registry
from hushcast_directory.server import DirectoryServer
from hushcast_node.daemon import Daemon, Parts
from hushcast_node.overlay_side import OverlayParts
from hushcast_overlay.identity import draw_identity
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.handovers import CheckRoster
from hushcast_protocol.base.roster import Network, check_roster
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.overlay.profile import PROFILES
from hushcast_runtime.store import MemoryStore
from hushcast_testnet.compare.machines import Machine
from hushcast_testnet.compare.network import EPOCH_SECONDS, User, World, live, until_ready


async def start_tree(world: World, nursery: trio.Nursery) -> list[User]:
    """Start a directory and all participants; return these when they are ready."""
    return await _Tree(world).start(nursery)


class _Tree:
    def __init__(self, world: World) -> None:
        self._world = world
        self._network = Network("comparison", world.scene.profile, EPOCH_SECONDS)
        self._directory_seed = Seed.draw(world.env.randomness)
        self._check: CheckRoster = world.shared(check_roster)

    async def start(self, nursery: trio.Nursery) -> list[User]:
        address = await nursery.start(self._direct)
        users = []
        for number in range(self._world.scene.nodes):
            daemon, machine = self._relay(f"relay-{number}", address)
            await nursery.start(live, daemon.run, machine)
            users.append(User(daemon, machine))
        await until_ready(users)
        return users

    async def _direct(self, *, task_status: trio.TaskStatus[Address]) -> None:
        world, seed = self._world, self._directory_seed
        machine, transport = world.machine("directory")
        machine.run_here()
        registry = Registry(self._network, seed, MemoryStore(), world.scene.nodes)
        env = world.environment("directory")
        server = DirectoryServer(env, transport, self._network.id, seed, registry)
        listener = await transport.listen(seed)
        task_status.started(listener.address)
        await server.run(listener)

    def _relay(self, name: str, directory: Address) -> tuple[Daemon, Machine]:
        world = self._world
        machine, transport = world.machine(name)
        env = world.environment(name)
        overlay = OverlayParts(
            self._network,
            PROFILES[world.scene.profile],
            directory,
            self._directory_seed.public(),
            draw_identity(env.randomness),
            self._check,
        )
        parts = Parts(overlay, env, transport, MemoryStore(), derive=world.derive, probes_an_epoch=0.0)
        return Daemon(parts), machine
