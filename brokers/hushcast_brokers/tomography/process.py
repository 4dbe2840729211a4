"""Runs the tomography service as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

from hushcast_brokers import program
from hushcast_brokers.keys import BROKER_KEYS
from hushcast_brokers.tomography.counters import TOMOGRAPHY_COUNTERS, TOMOGRAPHY_GAUGES
from hushcast_brokers.tomography.daemon import TomographyDaemon, TomographyParts
from hushcast_brokers.tomography.section import SERVICE_FILE, service_lines
from hushcast_brokers.tomography.settings import TomographySettings
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.brokers.broker_tree import MAX_BROKERS
from hushcast_runtime.files import load_seed, write_private
from hushcast_runtime.processes.doctor import DaemonKind
from hushcast_runtime.processes.examined_process import Process, ProcessContext
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import run_process
from hushcast_runtime.transports.connection_guard import MAX_STRANGERS

TOMOGRAPHY = DaemonKind(
    program.TOMOGRAPHY,
    MAX_BROKERS + MAX_STRANGERS + 128,  # each broker has a link; the database
    TOMOGRAPHY_COUNTERS,
    TOMOGRAPHY_GAUGES,
    BROKER_KEYS,
)


def run_tomography(load: Load[TomographySettings]) -> None:
    """Run the service until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""
    run_process(load, _Tomography)


class _Tomography(Process):
    def __init__(self, settings: TomographySettings) -> None:
        super().__init__(settings, TOMOGRAPHY)
        self._own = settings
        self._service: TomographyDaemon | None = None
        self._key = b""

    def _make(self, around: ProcessContext) -> TomographyDaemon:
        settings, state = self._own, self._own.state_path()
        seed, service = (load_seed(state / name, around.env.randomness) for name in BROKER_KEYS)
        self._key = seed.public()
        daemon = self._service = TomographyDaemon(
            TomographyParts(
                settings.network.network(),
                seed,
                service,
                settings.network.address(),
                settings.cap,
                around.env,
                around.transport,
                around.store,
                around.counters,
                self._own.settle,
            )
        )
        return daemon

    def _give_out(self) -> None:
        assert self._service is not None
        lines = service_lines(self._key, self._service.address, self._own.cap)
        write_private(self._own.state_path() / SERVICE_FILE, lines.encode())

    def _own_findings(self) -> list[Finding]:
        status = self._service.status() if self._service is not None else {}
        if not status.get("tree_version"):
            return [bad("tree", "none held yet", "see whether the root runs: it is asked again and again")]
        listed, connected = status["brokers_listed"], status["brokers_connected"]
        told = f"{connected} of {listed} connected"
        found = [good("tree", f"version {status['tree_version']}")]
        if connected < listed:
            advice = f"each states once its configuration has the section of {SERVICE_FILE}"
            return [*found, warning("brokers", told, advice)]
        return [*found, good("brokers", told)]

    def _doing(self) -> str:
        assert self._service is not None
        status = self._service.status()
        if not status["tree_version"]:
            return "waiting for the root to say its tree"
        return f"working, {status['brokers_connected']} of {status['brokers_listed']} brokers state"
