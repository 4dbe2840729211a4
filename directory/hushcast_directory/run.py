"""Runs the directory as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

import json
from pathlib import Path

import structlog
import trio

from hushcast_directory.registry import Registry
from hushcast_directory.server import DirectoryServer
from hushcast_protocol.addresses import Address, parse_address
from hushcast_protocol.secrets import Seed
from hushcast_runtime.config import DirectorySettings
from hushcast_runtime.environment import system_environment
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.process import open_transport, run_until_signal
from hushcast_runtime.store import Change, SqliteStore, Store
from hushcast_runtime.transports.base import Listener, Transport, TransportError

NETWORK_FILE = "network.toml"
"""In the state directory: the `[network]` section that daemons of the network need."""

_ADDRESS = "address"
log = structlog.get_logger("directory")


def run_directory(settings: DirectorySettings) -> None:
    """Run the directory until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""

    async def live(nursery: trio.Nursery) -> None:
        await _live(settings, nursery)

    run_until_signal(settings, live)


async def _live(settings: DirectorySettings, nursery: trio.Nursery) -> None:
    env = system_environment()
    state = Path(settings.state)
    store = SqliteStore(state / "state.db")
    try:
        seed = load_seed(state / "directory.key", env.randomness)
        network = settings.network.network()
        registry = Registry(network, seed, store, settings.first_roster)
        await registry.load()
        async with trio.open_nursery() as living:
            living.start_soon(store.run)
            transport = await open_transport(settings, nursery, lambda tor: None)
            listener = await _open_address(load_seed(state / "service.key", env.randomness), transport, store)
            server = DirectoryServer(env, transport, network.id, seed, registry)
            living.start_soon(server.run, listener)
            await _until_published(listener)
            _write_network_file(state / NETWORK_FILE, settings, listener.address, seed)
            log.info("running")
    finally:
        store.close()


async def _open_address(service: Seed, transport: Transport, store: Store) -> Listener:
    kept = await store.scan(_ADDRESS)
    previous = parse_address(kept[0][1].decode()) if kept else None
    listener = await transport.listen(service, previous)
    await store.write(Change(_ADDRESS, b"", listener.address.encode()))
    return listener


async def _until_published(listener: Listener) -> None:
    while True:
        try:
            return await listener.published()
        except TransportError as error:
            log.warning("the address is not published yet", reason=str(error))


def _write_network_file(path: Path, settings: DirectorySettings, address: Address, seed: Seed) -> None:
    network = settings.network
    write_private(
        path,
        (
            "[network]\n"
            f"name = {json.dumps(network.name)}\n"  # JSON's strings are TOML's, too
            f'profile = "{network.profile}"\n'
            f"epoch_seconds = {network.epoch_seconds}\n"
            f'directory = "{address}"\n'
            f'directory_key = "{seed.public().hex()}"\n'
        ).encode(),
    )
