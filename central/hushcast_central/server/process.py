"""Runs a server as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hushcast_central import program
from hushcast_central.counters import SERVER_COUNTERS
from hushcast_central.gauges import CENTRAL_GAUGES
from hushcast_central.keys import SERVER_KEYS, load_scalar
from hushcast_central.network_file import central_section
from hushcast_central.server.daemon import CentralServer, ServerKeys, ServerParts
from hushcast_central.server.doctor import examine_proxies
from hushcast_central.settings import ServerSettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_runtime.files import load_or_create, load_seed, write_private
from hushcast_runtime.processes.doctor import DaemonKind
from hushcast_runtime.processes.examined_process import Process, ProcessContext
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import run_process

NETWORK_FILE = "network.toml"
"""In a server's state directory: the `[network]` section that proxies and daemons of the network need."""
SERVER = DaemonKind(
    program.SERVER,
    512,  # links and dials of proxies, the database
    SERVER_COUNTERS,
    CENTRAL_GAUGES,
    SERVER_KEYS,
)


def run_server(load: Load[ServerSettings]) -> None:
    """Run a server until SIGTERM or SIGINT; raises the `HushcastError` that ended it.

    SIGHUP makes it serve the proxies that the configuration lists then, write `network.toml` anew, and
    announce the wire that the configuration wants.
    """
    run_process(load, _Server)


class _Server(Process):
    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings, SERVER)
        self._own = settings
        self._proxies = settings.proxies()
        self._server: CentralServer | None = None
        self._network: CentralNetwork | None = None

    def apply(self, fresh: ServerSettings) -> None:
        """Serve the proxies of a configuration, and no others; raises `UsageError`, then of nothing."""
        proxies = fresh.proxies()
        if self._server is not None and self._network is not None:
            _check_keys(proxies, self._network)
            if self._is_published:
                self._write(proxies)
            self._server.replace_proxies(proxies)
            self._living.start_soon(self._server.announce, fresh.wire)
        self._proxies = proxies
        self._own = msgspec.structs.replace(self._own, wire=fresh.wire)

    def _make(self, around: ProcessContext) -> CentralServer:
        settings, state = self._own, self._own.state_path()
        seed_file, service_file, sealing_file, group_file = (state / name for name in SERVER_KEYS)
        seed = load_seed(seed_file, around.env.randomness)
        sealing = SealingKey(load_or_create(sealing_file, SealingKey.LENGTH, around.env.randomness))
        group = load_scalar(group_file, around.env.randomness)
        network = self._network = settings.network.network(seed.public(), sealing.public())
        _check_keys(self._proxies, network)
        self._tracer = settings.tracer(seed.public().hex(), network.epoch_seconds, around.env)
        server = self._server = CentralServer(
            ServerParts(
                network,
                ServerKeys(seed, sealing, group),
                load_seed(service_file, around.env.randomness),
                self._proxies,
                settings.network.central_profile(),
                around.env,
                around.transport,
                around.store,
                around.counters,
                self._tracer,
                settings.wire,
                settings.kept(),
            )
        )
        return server

    def _give_out(self) -> None:
        self._write(self._proxies)

    def _write(self, proxies: Sequence[Proxy]) -> None:
        assert self._server is not None
        assert self._network is not None
        text = central_section(self._network, self._server.address, proxies)
        path = self._own.state_path() / NETWORK_FILE
        try:
            write_private(path, text.encode())
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from None

    def _own_findings(self) -> list[Finding]:
        if self._server is None:
            return examine_proxies(self._proxies, frozenset())
        connected = frozenset(self._server.connected())
        return [*self._server.examine_wire(), *examine_proxies(self._proxies, connected)]

    def _doing(self) -> str:
        assert self._server is not None
        if not self._proxies:
            return "working, but no proxy is listed yet: `hushcast admin central admit` lists one"
        return f"working, {len(self._server.connected())} of {len(self._proxies)} proxies connected"


def _check_keys(proxies: Sequence[Proxy], network: CentralNetwork) -> None:
    """Raise `UsageError` where a proxy has the server's own key."""
    if any(proxy.key == network.server for proxy in proxies):
        raise UsageError("proxies: one has the key of this server; a proxy has one of its own")
