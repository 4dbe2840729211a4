"""Runs a proxy as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

from hushcast_central import program
from hushcast_central.counters import PROXY_COUNTERS
from hushcast_central.gauges import CENTRAL_GAUGES
from hushcast_central.keys import PROXY_KEYS
from hushcast_central.network_file import proxy_section
from hushcast_central.proxy.daemon import CentralProxy, ProxyParts
from hushcast_central.proxy.doctor import examine_server_link
from hushcast_central.proxy.users import MAX_ATTACHED
from hushcast_central.settings import ProxySettings
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.central.network import Proxy
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.processes.doctor import DaemonKind
from hushcast_runtime.processes.examined_process import Process, ProcessContext
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import run_process
from hushcast_runtime.transports.connection_guard import MAX_STRANGERS

PROXY_FILE = "proxy.toml"
"""In a proxy's state directory: the lines that the server's operator needs."""
PROXY = DaemonKind(
    program.PROXY,
    MAX_ATTACHED + MAX_STRANGERS + 512,  # a connection for each pseudonym, too
    PROXY_COUNTERS,
    CENTRAL_GAUGES,
    PROXY_KEYS,
)

_WAITING = {
    "not listed": "waiting for the server to list this proxy",
    "not reached": "the server is not reached, trying again",
    None: "connecting to the server",
}


def run_proxy(load: Load[ProxySettings]) -> None:
    """Run a proxy until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""
    run_process(load, _Proxy)


class _Proxy(Process):
    def __init__(self, settings: ProxySettings) -> None:
        super().__init__(settings, PROXY)
        self._own = settings
        self._proxy: CentralProxy | None = None
        self._key = b""

    def _make(self, around: ProcessContext) -> CentralProxy:
        settings, network = self._own, self._own.network.network()
        seed, service = (
            load_seed(settings.state_path() / name, around.env.randomness) for name in PROXY_KEYS
        )
        self._key = seed.public()
        self._tracer = settings.tracer(self._key.hex(), network.epoch_seconds, around.env)
        proxy = self._proxy = CentralProxy(
            ProxyParts(
                network,
                seed,
                service,
                settings.role,
                Address(settings.network.server),
                around.env,
                around.transport,
                around.store,
                around.counters,
                self._tracer,
            )
        )
        return proxy

    def _give_out(self) -> None:
        assert self._proxy is not None
        own = Proxy(self._key, self._proxy.address, self._own.role)
        write_private(self._own.state_path() / PROXY_FILE, proxy_section(own).encode())

    def _own_findings(self) -> list[Finding]:
        if self._proxy is None:
            return [examine_server_link(None)]
        return [examine_server_link(self._proxy.link_state), *self._proxy.examine_wire()]

    def _doing(self) -> str:
        state = self._proxy.link_state if self._proxy is not None else None
        return f"{self._own.role}: {'working' if state == 'open' else _WAITING[state]}"
