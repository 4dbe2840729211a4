"""Runs an owner as a process: from its settings to a life that a signal ends."""

from __future__ import annotations

import trio

from hushcast_located.owner_service.doctor import OWNER_KIND, own_findings
from hushcast_located.owner_service.feed_owner import FeedOwner
from hushcast_located.owner_service.owner_seeds import OwnerSeeds, open_seeds
from hushcast_located.owner_service.settings import OwnerSettings
from hushcast_protocol.base.findings import Finding
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.logs import log
from hushcast_runtime.processes.doctors_socket import tell_findings
from hushcast_runtime.processes.process import Load
from hushcast_runtime.processes.process_frame import ProcessFrame, run_process
from hushcast_runtime.processes.readiness import Health
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.storage.store import SqliteStore
from hushcast_runtime.wording import counted


def run_owner(load: Load[OwnerSettings]) -> None:
    """Run an owner until SIGTERM or SIGINT; raises the `HushcastError` that ended it."""
    run_process(load, OwnerProcess)


class OwnerProcess(ProcessFrame[OwnerSettings]):
    """One owner's process."""

    def __init__(self, settings: OwnerSettings) -> None:
        counters = Counters(OWNER_KIND.counters)
        keys = () if settings.key else OWNER_KIND.keys
        super().__init__(settings, OWNER_KIND.program, system_environment(), counters, keys)
        self._owner: FeedOwner | None = None
        self._seeds: OwnerSeeds

    async def _open_sockets(self, nursery: trio.Nursery) -> None:
        settings = self._settings
        self._seeds = open_seeds(settings, self._env.randomness)
        await nursery.start(tell_findings, settings.doctors_socket(), self._examine)
        await self._serve_metrics(nursery, OWNER_KIND.gauges)

    async def _work(self, store: SqliteStore, nursery: trio.Nursery) -> None:
        async with trio.open_nursery() as living:
            living.start_soon(store.run)
            await migrate(store, OWNER_KIND.program.migrations.load())
            owner = FeedOwner(self._settings, self._seeds, store, self._env, self._counters)
            await living.start(owner.run)
            self._owner = owner
            log.info("running")

    def health(self) -> Health:
        """Tell how far the owner is."""
        owner = self._owner
        if owner is None:
            return Health(False, "starting")
        away = "" if owner.is_there else ", the daemon does not answer"
        signed = counted(owner.pool.progress.signed, "batch", "batches")
        return Health(True, f"working, {signed}{away}")

    async def _examine(self) -> list[Finding]:
        await trio.lowlevel.checkpoint()
        return own_findings(self._settings, self._owner, self._counters)

    def _readings(self) -> dict[str, float]:
        owner = self._owner
        if owner is None:
            return {"ready": 0.0, "network_ready": 0.0}
        done = owner.pool.progress
        return {
            "ready": 1.0,
            "network_ready": float(owner.is_there),
            "messages_waiting": float(len(owner.pool)),
            "batch_signed": float(done.signed),
            "batch_published": float(done.published),
        }
