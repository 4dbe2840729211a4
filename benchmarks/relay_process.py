"""One relay daemon as a process over loopback tcp, with its store in memory or on disk.

Its one argument is JSON: network, epoch_seconds, directory, directory_key, store (a path, null for memory).
All but the store is what `hushcast node run` wires, without a control socket.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import trio

from hushcast_node.daemon import Daemon, Parts
from hushcast_node.identity import draw_identity
from hushcast_protocol.addresses import parse_address
from hushcast_protocol.profile import HARDENED
from hushcast_protocol.roster import Network
from hushcast_runtime.environment import system_environment
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.store import MemoryStore, SqliteStore
from hushcast_runtime.transports.tcp import TcpTransport


async def live(settings: dict[str, str]) -> None:
    """Run the daemon until SIGTERM."""
    store = SqliteStore(Path(settings["store"])) if settings["store"] else MemoryStore()
    env = system_environment()
    parts = Parts(
        Network(settings["network"], HARDENED.name, int(settings["epoch_seconds"])),
        HARDENED,
        parse_address(settings["directory"]),
        bytes.fromhex(settings["directory_key"]),
        draw_identity(os.urandom),
        env,
        TcpTransport(),
        store,
    )
    try:
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(Daemon(parts).run)
                async for _ in signals:
                    nursery.cancel_scope.cancel()
                    return
    finally:
        store.close()


if __name__ == "__main__":
    configure_logs("error", False)
    trio.run(live, json.loads(sys.argv[1]))
