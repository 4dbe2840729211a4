"""Runs a provider as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

import trio

from hushcast_located.service.counters import PROVIDER_COUNTERS, PROVIDER_GAUGES
from hushcast_located.service.doctor import PROVIDER, own_findings
from hushcast_located.service.identity import ProviderIdentity, open_identity
from hushcast_located.service.provider import Provider
from hushcast_located.service.settings import ProviderSettings
from hushcast_located.service.upgrade import MIGRATIONS, VERSION
from hushcast_protocol.base.findings import Finding
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.logs import log
from hushcast_runtime.processes.doctors_socket import tell_findings
from hushcast_runtime.processes.metrics import MetricsServer
from hushcast_runtime.processes.process import Load, run_until_signal
from hushcast_runtime.processes.readiness import Health
from hushcast_runtime.storage.state_directory import check_keys
from hushcast_runtime.storage.state_layout import DATABASE, check_version, kept_version, migrate
from hushcast_runtime.storage.store import SqliteStore, Store
from hushcast_runtime.wording import counted


def run_provider(load: Load[ProviderSettings]) -> None:
    """Run a provider until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""
    settings = load()
    process = ProviderProcess(settings)
    run_until_signal(settings, load, process.live, process.health)


class ProviderProcess:
    """One provider process."""

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._env = system_environment()
        self._counters = Counters(PROVIDER_COUNTERS)
        self._provider: Provider | None = None
        self._ready = False

    async def live(self, nursery: trio.Nursery) -> None:
        """Start everything, and work until the nursery is cancelled."""
        settings, state = self._settings, self._settings.state_path()
        check_version(kept_version(state), VERSION)  # before anything is written
        check_keys(state, PROVIDER.keys)
        identity = open_identity(settings, self._env.randomness)
        await nursery.start(tell_findings, settings.doctors_socket(), self._examine)
        if (endpoint := settings.metrics_endpoint()) is not None:
            metrics = MetricsServer(self._counters, self._readings, PROVIDER_GAUGES)
            await nursery.start(metrics.run, endpoint, settings.socket_group)
        store = SqliteStore(state / DATABASE)
        try:
            async with trio.open_nursery() as living:
                living.start_soon(store.run)
                await migrate(store, MIGRATIONS)
                provider = self._make(identity, store)
                await living.start(provider.run)
                self._provider, self._ready = provider, True
                log.info("running")
        finally:
            store.close()

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
