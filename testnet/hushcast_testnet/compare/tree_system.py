"""The tree system: a directory, and participants that all are relays, as VB §4.2 has them."""

from __future__ import annotations

import trio

from hushcast_directory.client.pinned_directories import PinnedDirectories, RosterChecks
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_node.relay_role import RelayRole
from hushcast_overlay.relay.identity import draw_identity
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import Network, check_roster
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.profile import PROFILES
from hushcast_runtime.storage.store import MemoryStore
from hushcast_testnet.compare.machines import Machine
from hushcast_testnet.compare.modelled_network import (
    EPOCH_SECONDS,
    MachineUser,
    MachineWorld,
    ModelledNetwork,
    live,
    until_ready,
)

AT_ONCE = 16  # links that a relay opens at once before anything is measured
LINKED_WITHIN = 300.0  # virtual seconds in which all are open


async def start_tree(world: MachineWorld, nursery: trio.Nursery) -> ModelledNetwork:
    """Start a directory and all participants."""
    tree = _Tree(world)
    users = await tree.start(nursery)
    return ModelledNetwork(users, tree.prepare)


def _relay_of(daemon: NodeDaemon) -> RelayRole:
    assert daemon.overlay.relay is not None
    return daemon.overlay.relay


class _Tree:
    def __init__(self, world: MachineWorld) -> None:
        self._world = world
        self._network = Network("comparison", world.scene.profile, EPOCH_SECONDS)
        self._profile = PROFILES[world.scene.profile]
        self._directory_seed = Seed.draw(world.env.randomness)
        self._checks = RosterChecks(world.shared(check_roster))
        self._daemons: list[tuple[NodeDaemon, Machine]] = []

    async def start(self, nursery: trio.Nursery) -> list[MachineUser]:
        address = await nursery.start(self._direct)
        for number in range(self._world.scene.nodes):
            daemon, machine = self._relay(f"relay-{number}", address)
            await nursery.start(live, daemon.run, machine)
            self._daemons.append((daemon, machine))
        users = [MachineUser(daemon, machine) for daemon, machine in self._daemons]
        await until_ready(users)
        return users

    async def prepare(self) -> None:
        """Open what is open where all have subscribed before: links."""
        if self._world.scene.linked:
            await self._link_all()

    async def _link_all(self) -> None:
        """Open the links between relays that are not there."""
        relays = [(_relay_of(daemon), machine) for daemon, machine in self._daemons]
        async with trio.open_nursery() as nursery:
            for number, (relay, machine) in enumerate(relays):
                hops = [relay_hop(other.id) for other, _ in relays[number + 1 :]]
                missing = [hop for hop in hops if not relay.peers.is_linked(hop)]
                for part in range(AT_ONCE):
                    nursery.start_soon(self._link, relay, machine, missing[part::AT_ONCE])

    async def _link(self, relay: RelayRole, machine: Machine, hops: list[Hop]) -> None:
        machine.run_here()
        for hop in hops:
            await relay.peers.connect(hop, LINKED_WITHIN)

    async def _direct(self, *, task_status: trio.TaskStatus[Address]) -> None:
        world, seed = self._world, self._directory_seed
        machine, transport = world.machine("directory")
        machine.run_here()
        roll, sitting = Roll(self._network, seed, MemoryStore()), SetOfOne(world.scene.nodes)
        env = world.environment("directory")
        server = DirectoryServer(env, transport, roll, sitting)
        listener = await transport.listen(seed)
        task_status.started(listener.address)
        await server.run(listener)

    def _relay(self, name: str, directory: Address) -> tuple[NodeDaemon, Machine]:
        world = self._world
        machine, transport = world.machine(name)
        env = world.environment(name)
        overlay = OverlayParts(
            self._network,
            self._profile,
            PinnedDirectories.alone(directory, self._directory_seed.public()),
            draw_identity(env.randomness),
            self._checks,
        )
        parts = NodeParts(overlay, env, transport, MemoryStore(), derive=world.derive, probes_an_epoch=0.0)
        return NodeDaemon(parts), machine
