"""Runs a provider as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

import trio

from hushcast_located.service.doctor import PROVIDER, own_findings
from hushcast_located.service.identity import ProviderIdentity, open_identity
from hushcast_located.service.provider import Provider
from hushcast_located.service.settings import ProviderSettings
from hushcast_protocol.base.findings import Finding
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.logs import log
from hushcast_runtime.processes.doctors_socket import tell_findings
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import ProcessFrame, run_process
from hushcast_runtime.processes.readiness import Health
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import SqliteStore, Store
from hushcast_runtime.wording import counted


def run_provider(load: Load[ProviderSettings]) -> None:
    """Run a provider until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""
    run_process(load, ProviderProcess)


class ProviderProcess(ProcessFrame[ProviderSettings]):
    """One provider process."""

    def __init__(self, settings: ProviderSettings) -> None:
        counters = Counters(PROVIDER.counters)
        super().__init__(settings, PROVIDER.program, system_environment(), counters, PROVIDER.keys)
        self._provider: Provider | None = None
        self._ready = False
        self._identity: ProviderIdentity

    async def _open_sockets(self, nursery: trio.Nursery) -> None:
        settings = self._settings
        self._identity = open_identity(settings, self._env.randomness)
        await nursery.start(tell_findings, settings.doctors_socket(), self._examine)
        await self._serve_metrics(nursery, PROVIDER.gauges)

    async def _work(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        async with trio.open_nursery() as living:
            living.start_soon(store.run)
            await migrate(store, PROVIDER.program.migrations.load())
            provider = self._make(self._identity, store)
            await living.start(provider.run)
            self._provider, self._ready = provider, True
            log.info("running")

    def _make(self, identity: ProviderIdentity, store: Store) -> Provider:
        return Provider(self._settings, identity, store, self._env, self._counters)

    def health(self) -> Health:
        """Tell how far the provider is."""
        provider = self._provider
        if provider is None:
            return Health(False, "starting")
        away = "" if provider.is_there else ", the daemon does not answer"
        return Health(True, f"working, {counted(len(provider.shelf.register), 'subscription')}{away}")

    async def _examine(self) -> list[Finding]:
        await trio.lowlevel.checkpoint()
        provider = self._provider
        if provider is None:
            return own_findings(self._settings, None, False)
        return own_findings(self._settings, provider.shelf, provider.is_there)

    def _readings(self) -> dict[str, float]:
        provider = self._provider
        if provider is None:
            return {"ready": 0.0, "network_ready": 0.0}
        shelf = provider.shelf
        last = shelf.arrivals.last
        return {
            "ready": float(self._ready),
            "network_ready": float(provider.is_there),
            "subscriptions": float(len(shelf.register)),
            "batches_held": float(len(shelf.arrivals.held)),
            "batch_newest": float(last.body.number if last is not None else 0),
        }
