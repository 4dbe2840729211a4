"""A process of a daemon with a doctor's socket: from settings to a life in which it is examined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.processes.doctor import DaemonKind, Doctor
from hushcast_runtime.processes.doctors_socket import ExaminedSettings, tell, tell_findings
from hushcast_runtime.processes.metrics import GAUGES, readings
from hushcast_runtime.processes.own_address import until_published
from hushcast_runtime.processes.process import open_transport
from hushcast_runtime.processes.process_frame import ProcessFrame
from hushcast_runtime.processes.readiness import Health
from hushcast_runtime.storage.store import SqliteStore, Store
from hushcast_runtime.tor.consensus import compare_clock
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener, Transport


class ExaminedDaemon(Protocol):
    """What lives in such a process."""

    @property
    def clock(self) -> DaemonClock:
        """The trusted clock."""

    @property
    def listener(self) -> Listener | None:
        """Where it is reached, once it has started."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled; started when it listens."""

    def status(self) -> Mapping[str, Any]:
        """Tell how it is."""


@dataclass(frozen=True)
class ProcessContext:
    """What a daemon is given by its process."""

    env: Environment
    counters: Counters
    store: Store
    transport: Transport


class Process(ProcessFrame[ExaminedSettings]):
    """One process."""

    def __init__(self, settings: ExaminedSettings, kind: DaemonKind) -> None:
        super().__init__(settings, kind.program, settings.environment(), Counters(kind.counters), kind.keys)
        self._kind = kind
        self._doctor = Doctor(settings, self._env, kind)
        self._tor: TorTransport | None = None
        self._daemon: ExaminedDaemon | None = None
        self._living: trio.Nursery
        self._is_published = False

    @abstractmethod
    def _make(self, around: ProcessContext) -> ExaminedDaemon:
        """Return the daemon; its keys are drawn if there are none yet."""

    @abstractmethod
    def _give_out(self) -> None:
        """Write what others need to reach the daemon, whose address is published; may raise `OSError`."""

    @abstractmethod
    def _own_findings(self) -> list[Finding]:
        """Return what this kind of daemon alone is examined for."""

    @abstractmethod
    def _doing(self) -> str:
        """Say in one line what the daemon does, now that it is published."""

    def _problem(self, daemon: ExaminedDaemon) -> str | None:
        """Say in one line what is wrong though it is published; `None`: nothing."""
        return daemon.clock.problem()

    def _sockets(self) -> Sequence[tuple[str, Callable[[], Awaitable[bytes]]]]:
        """Return what this kind of daemon tells beside its findings: sockets in its state, and answers."""
        return ()

    async def _open_sockets(self, nursery: trio.Nursery) -> None:
        settings = self._settings
        await nursery.start(tell_findings, settings.doctors_socket(), self._examine)
        for name, answer in self._sockets():
            await nursery.start(tell, settings.state_path() / name, answer, f"the socket {name}")
        await self._serve_metrics(nursery, {**GAUGES, **self._kind.gauges})

    async def _work(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        """Others can reach the daemon when `running` is logged."""
        settings = self._settings
        transport = await open_transport(settings, nursery, self._announce)
        daemon = self._daemon = self._make(ProcessContext(self._env, self._counters, store, transport))
        async with trio.open_nursery() as living:
            self._living = living
            if self._tor is not None:
                await living.start(compare_clock, daemon.clock, self._tor)
            await living.start(daemon.run)
            assert daemon.listener is not None
            self._doctor.transport, self._doctor.listener = transport, daemon.listener
            await until_published(daemon.listener)
            self._is_published = True
            try:
                self._give_out()
            except OSError as error:
                where = error.filename2 or error.filename or settings.state_path()
                raise UsageError(f"{where} cannot be written: {error.strerror}") from None
            log.info("running")

    def health(self) -> Health:
        """Tell how far the daemon is: Tor, then the onion service."""
        tor, daemon = self._tor, self._daemon
        if daemon is None or not self._is_published:
            if tor is not None and not tor.state.has_begun:
                return Health(False, f"waiting for tor: {tor.state.doing}")
            return Health(False, "opening the onion service")
        if tor is not None and not tor.state.connected:
            return Health(True, f"{tor.state.away}, trying again")
        if (problem := self._problem(daemon)) is not None:
            return Health(True, problem)
        return Health(True, self._doing())

    async def _examine(self) -> list[Finding]:
        return await self._doctor.examine(self._own_findings())

    def _status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"ready": self._is_published}
        if self._tor is not None:
            status["tor"] = asdict(self._tor.state)
            status["ready"] &= self._tor.state.connected  # without it no onion service is there
        return status | dict(self._daemon.status() if self._daemon is not None else {})

    def _readings(self) -> dict[str, float]:
        status = self._status()
        own = {name: float(status[name]) for name in self._kind.gauges if status.get(name) is not None}
        return readings(status) | own

    def _announce(self, tor: TorTransport) -> None:
        self._tor = self._doctor.tor = tor
