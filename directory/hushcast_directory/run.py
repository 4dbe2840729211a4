"""Runs the directory as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import structlog
import trio

from hushcast_directory.agreeing import Agreeing
from hushcast_directory.closed import read_names
from hushcast_directory.counted import DIRECTORY_COUNTERS
from hushcast_directory.expelled import ExpelledFile, follow
from hushcast_directory.publishing import Publishing
from hushcast_directory.registry import Registry
from hushcast_directory.roll import Roll
from hushcast_directory.server import DirectoryServer
from hushcast_directory.settings import DirectorySettings
from hushcast_directory.upgrade import MIGRATIONS, VERSION
from hushcast_protocol.authorities.expulsion import Expelled
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import PublicKey, RelayId
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.layout import DATABASE, check_version, kept_version, migrate
from hushcast_runtime.metrics import MetricsServer, readings
from hushcast_runtime.network_file import network_of_several, network_section
from hushcast_runtime.own_address import open_address, until_published
from hushcast_runtime.process import Load, open_transport, run_until_signal
from hushcast_runtime.readiness import Health
from hushcast_runtime.state_directory import check_keys
from hushcast_runtime.store import SqliteStore
from hushcast_runtime.tor.consensus import compare_clock
from hushcast_runtime.tor.transport import TorTransport

NETWORK_FILE = "network.toml"
"""In the state directory: the `[network]` section that daemons of the network need."""
KEY_FILES = ("directory.key", "service.key")
"""In the state directory: the key that signs rosters, and that of the onion service."""

log = structlog.get_logger("directory")


def run_directory(load: Load[DirectorySettings]) -> None:
    """Run the directory until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""
    settings = load()
    directory = _Directory(settings)
    run_until_signal(settings, load, directory.live, directory.health, directory.apply)


class _Directory:
    """One directory process."""

    def __init__(self, settings: DirectorySettings) -> None:
        self._settings = settings
        self._env = system_environment()
        self._tor: TorTransport | None = None
        self._registry: Registry | Roll | None = None
        self._publishing: Publishing | Agreeing | None = None
        self._counters = Counters(DIRECTORY_COUNTERS)
        self._published = False
        self._key: PublicKey | None = None
        self._names = _names(settings)
        self._expelled = _expelled_file(settings)
        self._left_out = _left_out(self._expelled)

    def apply(self, settings: DirectorySettings) -> None:
        """Take other lists of relays and what is voted for; `UsageError`, which changes nothing."""
        names, expelled = _names(settings), _expelled_file(settings)
        left_out = _left_out(expelled)
        if self._publishing is not None and self._key is not None:
            sitting, agreeing = settings.sitting(self._key), self._publishing
            if isinstance(agreeing, Agreeing) is (sitting is None):
                raise UsageError("authorities: a directory becomes one of several, or alone, at a restart")
            if isinstance(agreeing, Agreeing) and sitting is not None:
                agreeing.sit(sitting)
        self._names = names
        self._expelled = expelled
        if self._registry is not None:
            self._registry.confine(self._names)
        self._expel(left_out)

    async def live(self, nursery: trio.Nursery) -> None:
        """Start everything; what it needs to be reached is in place when `running` is logged."""
        settings, env = self._settings, self._env
        state = Path(settings.state)
        check_version(kept_version(state), VERSION)  # before anything is written
        check_keys(state, KEY_FILES[:1])  # the address may be a new one, after `key rotate service`
        if (endpoint := settings.metrics_endpoint()) is not None:
            metrics = MetricsServer(self._counters, lambda: readings(self._status()))
            await nursery.start(metrics.run, endpoint, settings.socket_group)
        store = SqliteStore(state / DATABASE)
        try:
            seed, service = (load_seed(state / name, env.randomness) for name in KEY_FILES)
            network = settings.network.network()
            self._key = seed.public()
            sitting = settings.sitting(self._key)
            registry = (
                Registry(network, seed, store, settings.first_roster)
                if sitting is None
                else Roll(network, seed, store)
            )
            async with trio.open_nursery() as living:
                living.start_soon(store.run)
                await migrate(store, MIGRATIONS)
                await registry.load()
                registry.confine(self._names)
                registry.expel(self._left_out)
                self._registry = registry
                living.start_soon(follow, lambda: self._expelled, self._expel, network.calendar.lead)
                transport = await open_transport(settings, nursery, self._announce)
                wanted = None if sitting is None else sitting.address_of(seed.public())
                listener = await open_address(service, transport, store, wanted)
                server = DirectoryServer(env, transport, network.id, seed, registry, self._counters, sitting)
                self._publishing = server.publishing
                if self._tor is not None:
                    await living.start(compare_clock, server.clock, self._tor)
                living.start_soon(server.run, listener)
                await until_published(listener)
                _write_network_file(state / NETWORK_FILE, settings, listener.address, seed)
                self._published = True
                log.info("running")
        finally:
            store.close()

    def _expel(self, expelled: Sequence[Expelled]) -> None:
        self._left_out = expelled
        if self._registry is not None:
            self._registry.expel(expelled)

    def health(self) -> Health:
        """Tell how far the directory is: Tor, then the onion service; relays come when it is there."""
        if self._published:
            if self._tor is not None and not self._tor.state.connected:
                return Health(True, "the control connection to tor is lost, trying again")
            if self._publishing is not None and (problem := self._publishing.problem) is not None:
                return Health(True, problem)
            relays = 0 if self._publishing is None else self._publishing.relays
            return Health(True, f"working, {relays} relays in the roster")
        if self._tor is not None and self._tor.state.percent < 100:
            return Health(False, f"waiting for tor: {self._tor.state.doing}")
        return Health(False, "opening the onion service")

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"ready": self._published}
        if self._tor is not None:
            status["tor"] = asdict(self._tor.state)
        publishing = self._publishing
        if isinstance(publishing, Agreeing):
            status["authorities_reached"] = publishing.peers.reached
        if publishing is not None and publishing.epoch is not None:
            status["roster"] = {"epoch": publishing.epoch, "relays": publishing.relays}
            status["epoch"] = self._settings.network.network().calendar.epoch(self._env.now())
        return status

    def _announce(self, tor: TorTransport) -> None:
        self._tor = tor


def _names(settings: DirectorySettings) -> frozenset[RelayId] | None:
    return None if settings.relays is None else read_names(Path(settings.relays))


def _expelled_file(settings: DirectorySettings) -> ExpelledFile | None:
    return None if settings.expelled is None else ExpelledFile(Path(settings.expelled))


def _left_out(file: ExpelledFile | None) -> Sequence[Expelled]:
    return (file.changed() or ()) if file is not None else ()


def _write_network_file(path: Path, settings: DirectorySettings, address: Address, seed: Seed) -> None:
    several = settings.authorities
    if several is None or len(several.members) == 1:
        text = network_section(settings.network, address, seed.public().hex())
    else:
        text = network_of_several(settings.network, several.members, several.quorum)
    write_private(path, text.encode())
