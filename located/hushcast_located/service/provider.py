"""A provider beside a daemon: what it knows, and its tasks while the daemon is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

import hushcast
from hushcast_located.service.answerer import Answerer
from hushcast_located.service.batch_taker import BatchTaker
from hushcast_located.service.change_signal import ChangeSignal
from hushcast_located.service.identity import ProviderIdentity
from hushcast_located.service.provider_store import ProviderStore
from hushcast_located.service.request_taker import RequestTaker
from hushcast_located.service.settings import ProviderSettings
from hushcast_protocol.spatial.located_requests import DAY, RequestOpener
from hushcast_protocol.spatial.subscription_register import SubscriptionRegister
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.exception_groups import innermost
from hushcast_runtime.logs import log
from hushcast_runtime.storage.store import Store

AGAIN = 5.0  # seconds between looks for a daemon that is not there, or that refuses a subscription

Task = Callable[[hushcast.Daemon], Awaitable[None]]


class Provider:
    """All of it; `answerer` is made by a function that tests may replace."""

    def __init__(
        self,
        settings: ProviderSettings,
        identity: ProviderIdentity,
        store: Store,
        env: Environment,
        counters: Counters,
        answerer: Callable[..., Answerer] = Answerer,
    ) -> None:
        self.is_there = False
        """Whether the daemon answers."""
        self.shelf = ProviderStore(
            store, env, identity.offer.owner, SubscriptionRegister(settings.most), float(settings.patience)
        )
        self._socket = Path(settings.daemon.socket)
        self._env = env
        owner, news = identity.offer.owner, ChangeSignal()
        opening = RequestOpener(identity.key, settings.difficulty)
        self._tasks: list[Task] = [
            BatchTaker(identity.feed, owner, self.shelf, news, env, counters).run,
            RequestTaker(identity.requests, opening, self.shelf, env, counters).run,
            answerer(owner, self.shelf, news, env, counters).run,
        ]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started when all is read back. Raises `StoreError`."""
        await self.shelf.load()
        await self.shelf.expire()
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._days)
            nursery.start_soon(self._converse)

    async def _days(self) -> None:
        while True:
            await self._env.sleep_until((self.shelf.today + 1) * DAY)
            await self.shelf.expire()

    async def _converse(self) -> None:
        """Keep a connection to the daemon, which may be away, and all tasks that need it."""
        is_told = False
        while True:
            try:
                async with hushcast.connect(self._socket, timeout=None) as daemon:
                    is_told, self.is_there = False, True
                    log.info("the daemon answers")
                    await self._work(daemon)
            except* (hushcast.NoDaemon, hushcast.Refusal) as errors:
                if not is_told:
                    log.warning("the daemon does not answer", error=type(innermost(errors)).__name__)
                    is_told = True
            self.is_there = False
            await trio.sleep(AGAIN)

    async def _work(self, daemon: hushcast.Daemon) -> None:
        async with trio.open_nursery() as nursery:
            for task in self._tasks:
                nursery.start_soon(self._again, task, daemon)

    async def _again(self, task: Task, daemon: hushcast.Daemon) -> None:
        """Run a task for ever: a subscription may be refused for now, or ended by somebody."""
        while True:
            try:
                await task(daemon)
            except hushcast.Refusal:
                log.warning("the daemon refuses a subscription")
            await trio.sleep(AGAIN)
