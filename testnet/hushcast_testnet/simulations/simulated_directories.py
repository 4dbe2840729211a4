"""The directories of an in-process overlay: one alone, or several that agree."""

from __future__ import annotations

import trio

from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import Network
from hushcast_runtime.storage.store import MemoryStore
from hushcast_testnet.simulations.lives import SimulatedWorld


class SimulatedDirectories:
    """Authorities that agree on heads, of which a majority signs each; or one alone."""

    def __init__(
        self, world: SimulatedWorld, network: Network, relays: int, count: int, shard_size: int
    ) -> None:
        """Their first head has so many relays."""
        self._world = world
        self._network = network
        self._seeds = [Seed.draw(world.env.randomness) for _ in range(count)]
        keys = [seed.public() for seed in self._seeds]
        members = [AuthorityContact(key, memory_address(key)) for key in keys]
        self.authorities = Authorities.of(members, count // 2 + 1, shard_size=shard_size)
        self.pinned = PinnedDirectories(self.authorities.members, self.authorities.quorum)
        """What daemons know of them."""
        self._relays = relays
        self.rolls: list[Roll] = []
        """The relays that each knows."""
        self.servers: list[DirectoryServer] = []

    async def open(self, nursery: trio.Nursery) -> None:
        """Start all."""
        world, network = self._world, self._network
        for number, seed in enumerate(self._seeds):
            transport = world.wires.transport()
            roll = Roll(network, seed, MemoryStore())
            await roll.load()
            sitting = ConfiguredSet(self.authorities, first=self._relays)
            env = world.environment(f"directory-{number}")
            server = DirectoryServer(env, transport, roll, sitting)
            self.rolls.append(roll)
            self.servers.append(server)
            nursery.start_soon(server.run, await transport.listen(seed))

    def agreeing(self) -> list[AuthorityDriver]:
        """Return what drives each."""
        return [server.agreeing for server in self.servers]
