"""A provider beside a daemon: what it knows, and its tasks while the daemon is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import trio

from hushcast_located.daemon_conversation import DaemonConversation
from hushcast_located.service.answerer import Answerer
from hushcast_located.service.batch_taker import BatchTaker
from hushcast_located.service.identity import ProviderIdentity
from hushcast_located.service.provider_store import ProviderStore
from hushcast_located.service.request_taker import RequestTaker
from hushcast_located.service.settings import ProviderSettings
from hushcast_protocol.spatial.located_requests import DAY, RequestOpener
from hushcast_protocol.spatial.subscription_register import SubscriptionRegister
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import Store


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
        self.shelf = ProviderStore(
            store, env, identity.offer.owner, SubscriptionRegister(settings.most), float(settings.patience)
        )
        self._env = env
        owner, news = identity.offer.owner, ChangeSignal()
        opening = RequestOpener(identity.key, settings.difficulty)
        self._daemon = DaemonConversation(
            Path(settings.daemon.socket),
            [
                BatchTaker(identity.feed, self.shelf, news, env, counters).run,
                RequestTaker(identity.requests, opening, self.shelf, env, counters).run,
                answerer(owner, self.shelf, news, env, counters).run,
            ],
        )

    @property
    def is_there(self) -> bool:
        """Whether the daemon answers."""
        return self._daemon.is_there

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started when all is read back. Raises `StoreError`."""
        await self.shelf.load()
        await self.shelf.expire()
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._days)
            nursery.start_soon(self._daemon.run)

    async def _days(self) -> None:
        while True:
            await self._env.sleep_until((self.shelf.today + 1) * DAY)
            await self.shelf.expire()
