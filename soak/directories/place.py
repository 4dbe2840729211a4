"""Where a scene of directories plays: over a private Tor network with disks, or in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import trio

from hushcast_protocol.base.addresses import Address, memory_address, onion_address
from hushcast_protocol.base.wire import PublicKey
from hushcast_runtime.environment import Environment, simulated_environment, system_environment
from hushcast_runtime.storage.store import MemoryStore, SqliteStore, Store
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at
from hushcast_testnet.tor.private_tor import TorNetwork

WAY = 0.1  # virtual seconds that a stream takes in memory


@dataclass(frozen=True)
class Place:
    """What the daemons of a scene stand on; each gets its own by its name."""

    environment: Callable[[str], Environment]
    transport: Callable[[trio.Nursery], Awaitable[Transport]]
    address: Callable[[PublicKey], Address]
    """Returns where a service with this key is reached."""
    store: Callable[[str], Store]


def over_tor(network: TorNetwork, directory: Path, begin: float) -> Place:
    """Return a place on a private Tor network; stores in `directory`. It is `begin` (Unix seconds) there."""
    system, started = system_environment(), trio.current_time()
    env = replace(system, now=lambda: begin + trio.current_time() - started)
    clients = cycle(network.clients)

    async def transport(nursery: trio.Nursery) -> Transport:
        control, socks = next(clients).endpoints()
        made = TorTransport(TorSettings(control=control, socks=socks))
        await nursery.start(made.run)
        return made

    return Place(
        lambda name: env, transport, onion_address, lambda name: SqliteStore(directory / f"{name}.db")
    )


def in_memory(seed: int, begin: float) -> Place:
    """Return a place under trio's clock that replays from a seed."""
    network, started = MemoryNetwork(lambda: WAY, call_at()), trio.current_time()

    async def transport(nursery: trio.Nursery) -> Transport:
        await trio.lowlevel.checkpoint()
        return network.transport()

    def environment(name: str) -> Environment:
        return simulated_environment(f"{seed} {name}", begin - started)

    return Place(environment, transport, memory_address, lambda name: MemoryStore())
