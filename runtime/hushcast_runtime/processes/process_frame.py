"""The frame of every process with a state: it looks at that, and opens and closes sockets and the store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

import trio

from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.processes.config import SettingsT
from hushcast_runtime.processes.metrics import MetricsServer
from hushcast_runtime.processes.process import Configuration, Load, run_until_signal, run_with_lock
from hushcast_runtime.processes.program import Program
from hushcast_runtime.processes.readiness import Health, Readiness, service_manager
from hushcast_runtime.processes.readiness_socket import tell_readiness
from hushcast_runtime.processes.standby import lock_when_free, read_again
from hushcast_runtime.storage.disk_use import disk_readings
from hushcast_runtime.storage.state_directory import check_keys
from hushcast_runtime.storage.state_layout import DATABASE, check_version, kept_version
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.tracing import NoTracer, Tracer


class ProcessFrame(ABC, Generic[SettingsT]):
    """One process."""

    def __init__(
        self,
        settings: SettingsT,
        program: Program,
        env: Environment,
        counters: Counters,
        keys: Sequence[str] = (),
    ) -> None:
        """`keys` are the key files that it does not start without, once it has a state."""
        self._settings = settings
        self._program = program
        self._needed_keys = keys
        self._env = env
        self._counters = counters
        self._tracer: Tracer = NoTracer()

    async def live(self, nursery: trio.Nursery) -> None:
        """Start everything, and work until the nursery is cancelled."""
        self._prepare()
        await nursery.start(tell_readiness, self._settings.ready_socket(), self.readiness)
        await self._open_sockets(nursery)
        store = SqliteStore(self._settings.state_path() / DATABASE)
        try:
            await self._work(store, nursery)
        finally:
            store.close()
            self._tracer.close()

    def _prepare(self) -> None:
        """Look at the state before anything else; raise `UsageError` or `StoreError` if it cannot be used."""
        state = self._settings.state_path()
        check_version(kept_version(state), self._program.version)  # before anything is written
        check_keys(state, self._needed_keys)

    async def _open_sockets(self, nursery: trio.Nursery) -> None:
        """Open the sockets that answer while all else starts."""

    @abstractmethod
    async def _work(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        """Make the daemon with its store, and work until cancelled; `nursery` outlives the daemon."""

    @abstractmethod
    def health(self) -> Health:
        """Tell how far the process is."""

    def readiness(self) -> Readiness:
        """Tell whether the process does now what it is there for."""
        return Readiness(bool(self._readings()["ready"]), self.health().doing)

    @abstractmethod
    def _readings(self) -> Mapping[str, float]:
        """Return the gauges by name; `ready` is among them."""

    def apply(self, fresh: Any) -> None:
        """Take what a running process can take of other settings; raises `UsageError`, then of nothing."""

    async def _serve_metrics(self, nursery: trio.Nursery, gauges: Mapping[str, str]) -> None:
        """Serve metrics where the settings say so; `gauges` are those of `_readings`, with their meanings."""
        settings = self._settings
        if (endpoint := settings.metrics_endpoint()) is None:
            return
        from importlib.metadata import version  # it brings what reads e-mail and archives: a megabyte

        build = {
            "version": version("hushcast"),
            "program": self._program.name,
            "role": self._program.role(settings).name,
        }

        def all_readings() -> Mapping[str, float]:
            return {**self._readings(), **disk_readings(settings.state_path())}

        metrics = MetricsServer(self._counters, all_readings, self.readiness, build, gauges)
        await nursery.start(metrics.run, endpoint, settings.socket_group)


def run_process(load: Load[SettingsT], make: Callable[[SettingsT], ProcessFrame[Any]]) -> None:
    """Run a process until SIGTERM or SIGINT; raises the `HushcastError` that ended it.

    One that stands by is made once no other process has its state.
    """
    settings = load()
    if not settings.stands_by:
        process = make(settings)
        run_until_signal(settings, load, process.live, process.health, process.apply)
        return
    manager = service_manager()
    if (lock := lock_when_free(settings, manager)) is None:
        return
    with lock:
        settings = read_again(load, settings)
        process = make(settings)
        configuration = Configuration(settings, load, process.apply)
        run_with_lock(process.live, process.health, configuration, manager)
