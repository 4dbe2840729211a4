"""The server or a proxy of a central system as a process over loopback tcp, its store on disk.

Its one argument is JSON: seed (hex), store (a path), network (as below), and for the server sealing and group
(hex) and proxies (pairs of key and role), for a proxy role and server (an address). It is what
`hushcast run` wires; the first line it prints is its address.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import trio

from hushcast_central.counters import PROXY_COUNTERS, SERVER_COUNTERS
from hushcast_central.proxy.daemon import CentralProxy, ProxyParts
from hushcast_central.server.daemon import CentralServer, ServerKeys, ServerParts
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_protocol.central.profile import CENTRAL_PROFILES
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.tcp import TcpTransport


async def live(settings: dict[str, Any]) -> None:
    """Run the daemon until SIGTERM."""
    store = SqliteStore(Path(settings["store"]))
    daemon = _server(settings, store) if "group" in settings else _proxy(settings, store)
    try:
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:
                await nursery.start(daemon.run)
                print(daemon.address, flush=True)
                async for _ in signals:
                    nursery.cancel_scope.cancel()
                    return
    finally:
        store.close()


def _network(settings: dict[str, Any]) -> CentralNetwork:
    name, profile, epoch, server, sealing = settings["network"]
    return CentralNetwork(name, profile, epoch, bytes.fromhex(server), bytes.fromhex(sealing))


def _server(settings: dict[str, Any], store: SqliteStore) -> CentralServer:
    keys = ServerKeys(
        Seed(bytes.fromhex(settings["seed"])),
        SealingKey(bytes.fromhex(settings["sealing"])),
        Scalar(bytes.fromhex(settings["group"])),
    )
    proxies = [Proxy(bytes.fromhex(key), Address("127.0.0.1:1"), role) for key, role in settings["proxies"]]
    network = _network(settings)
    return CentralServer(
        ServerParts(
            network,
            keys,
            Seed.draw(os.urandom),
            tuple(proxies),
            CENTRAL_PROFILES[network.profile],
            system_environment(),
            TcpTransport(),
            store,
            Counters(SERVER_COUNTERS),
            NoTracer(),
        )
    )


def _proxy(settings: dict[str, Any], store: SqliteStore) -> CentralProxy:
    return CentralProxy(
        ProxyParts(
            _network(settings),
            Seed(bytes.fromhex(settings["seed"])),
            Seed.draw(os.urandom),
            settings["role"],
            Address(settings["server"]),
            system_environment(),
            TcpTransport(),
            store,
            Counters(PROXY_COUNTERS),
            NoTracer(),
        )
    )


if __name__ == "__main__":
    configure_logs("error", False)
    trio.run(live, json.loads(sys.argv[1]))
