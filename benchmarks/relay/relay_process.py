"""One relay daemon as a process over loopback tcp or Tor, with its store in memory or on disk.

Its one argument is JSON: network, epoch_seconds, directory, directory_key, store (a path, null for memory),
tor (its control and socks ports, null for tcp), is_client (whether it is a client in place of a relay).
All but the store is what `hushcast run node` wires, without a control socket.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import trio

from benchmarks.tor.private_tor import over_tor
from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_overlay.relay.identity import draw_identity
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.roster import Network
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_runtime.environment import system_environment
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.storage.store import MemoryStore, SqliteStore
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_testnet.tor.tor_network import TorClient


async def _nothing(daemon: NodeDaemon) -> None:
    pass


async def live(settings: dict[str, Any], beside: Callable[[NodeDaemon], Awaitable[None]] = _nothing) -> None:
    """Run the daemon, and something beside it, until SIGTERM."""
    async with AsyncExitStack() as stack:
        transport: Transport = TcpTransport()
        if settings["tor"] is not None:
            transport = await stack.enter_async_context(over_tor(TorClient(**settings["tor"])))
        await _live(settings, transport, beside)


async def _live(
    settings: dict[str, Any], transport: Transport, beside: Callable[[NodeDaemon], Awaitable[None]]
) -> None:
    store = SqliteStore(Path(settings["store"])) if settings["store"] else MemoryStore()
    env = system_environment()
    parts = NodeParts(
        OverlayParts(
            Network(settings["network"], HARDENED.name, int(settings["epoch_seconds"])),
            HARDENED,
            PinnedDirectories.alone(
                parse_address(settings["directory"]), bytes.fromhex(settings["directory_key"])
            ),
            None if settings["is_client"] else draw_identity(os.urandom),
        ),
        env,
        transport,
        store,
    )
    try:
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                daemon = NodeDaemon(parts)
                nursery.start_soon(daemon.run)
                nursery.start_soon(beside, daemon)
                async for _ in signals:
                    nursery.cancel_scope.cancel()
                    return
    finally:
        store.close()


if __name__ == "__main__":
    configure_logs("error", False)
    trio.run(live, json.loads(sys.argv[1]))
