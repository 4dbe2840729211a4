"""A private Tor network for the harness, and transports over it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_testnet import processes
from hushcast_testnet.tor import private_tor
from hushcast_testnet.tor.distance import NEAR, Distance
from hushcast_testnet.tor.tor_network import TorClient

READY_WITHIN = 300.0  # seconds; measured 14 to 52
DISTANCES = (NEAR, Distance(40))  # between tors: on one machine, and across an ocean


@asynccontextmanager
async def private_network(directory: Path, distance: Distance = NEAR) -> AsyncIterator[TorClient]:
    """Run a private Tor network; yield the doors of its one client tor, which is ready."""
    with trio.fail_after(READY_WITHIN):
        network = await private_tor.start(directory, distance=distance)
    try:
        with trio.fail_after(READY_WITHIN):
            await private_tor.wait_ready(network)
        yield network.clients[0]
    finally:
        with trio.CancelScope(shield=True):
            await processes.stop(network.processes)


@asynccontextmanager
async def over_tor(client: TorClient) -> AsyncIterator[TorTransport]:
    """Run a transport of its own on a client tor."""
    control, socks = client.endpoints()
    transport = TorTransport(TorSettings(control=control, socks=socks))
    async with trio.open_nursery() as nursery:
        await nursery.start(transport.run)
        try:
            yield transport
        finally:
            nursery.cancel_scope.cancel()
