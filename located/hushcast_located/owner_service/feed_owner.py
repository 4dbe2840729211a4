"""An owner beside a daemon: what it takes in, signs and publishes, and its tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from hushcast.keys import read_link
from hushcast_located.daemon_conversation import DaemonConversation, Task
from hushcast_located.owner_service.batch_signer import BatchSigner, batches_in
from hushcast_located.owner_service.feed_publisher import FeedPublisher
from hushcast_located.owner_service.intake import FolderIntake, GivenReader, LineIntake, TopicIntake
from hushcast_located.owner_service.message_pool import MessagePool
from hushcast_located.owner_service.owner_seeds import OwnerSeeds
from hushcast_located.owner_service.settings import OwnerSettings
from hushcast_protocol.spatial.located_requests import DAY
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.files import private_directory
from hushcast_runtime.storage.store import Store


class FeedOwner:
    """All of it."""

    def __init__(
        self, settings: OwnerSettings, seeds: OwnerSeeds, store: Store, env: Environment, counters: Counters
    ) -> None:
        """Raises `UsageError` where a link cannot be read."""
        self.pool = MessagePool(store, env, counters)
        self._env = env
        private_directory(batches_in(settings.state_path()))
        news, given = ChangeSignal(), GivenReader(env, counters)
        self.signer = BatchSigner(settings, seeds, self.pool, news, env, counters)
        feed = read_link(settings.feed)
        publisher = FeedPublisher(feed, seeds, self.signer.folder, self.pool, news, env, counters)
        with_daemon: list[Task] = [publisher.run]
        self._alone: list[Callable[[], Awaitable[None]]] = [self._days, self.signer.run]
        self._folder: FolderIntake | None = None
        sources = settings.input
        if sources.topic is not None:
            with_daemon.append(TopicIntake(read_link(sources.topic), self.pool, given).run)
        if sources.directory is not None:
            self._folder = FolderIntake(Path(sources.directory), store, self.pool, given)
            self._alone.append(self._folder.run)
        if sources.lines is not None:
            self._alone.append(LineIntake(sources.lines, self.pool, given).run)
        self._daemon = DaemonConversation(Path(settings.daemon.socket), with_daemon)

    @property
    def is_there(self) -> bool:
        """Whether the daemon answers."""
        return self._daemon.is_there

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; started when all is read back. Raises `StoreError`, `UsageError`."""
        await self.pool.load()
        if self._folder is not None:
            await self._folder.load()
        await self.signer.load()
        task_status.started()
        async with trio.open_nursery() as nursery:
            for task in (*self._alone, self._daemon.run):
                nursery.start_soon(task)

    async def _days(self) -> None:
        while True:
            await self.pool.expire()
            await self._env.sleep_until((self.pool.today + 1) * DAY)
