"""An owner with its daemon, a clock that tests move, and a disk that may stop in the middle."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import trio
from fake_daemon import FakeDaemon

from hushcast.keys import new_link, write_link
from hushcast_located.batch_folder import BatchFolder
from hushcast_located.owner_service.counters import OWNER_COUNTERS
from hushcast_located.owner_service.feed_owner import FeedOwner
from hushcast_located.owner_service.owner_seeds import open_seeds
from hushcast_located.owner_service.settings import OwnersDaemonSection, OwnerSettings, OwnersInputSection
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import Batch, check_next, read_batch
from hushcast_protocol.spatial.message_parts import Assembly
from hushcast_protocol.spatial.owner_keys import OwnerKeys, check_handovers
from hushcast_protocol.spatial.tmr_tree import entries_of
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

START, SECONDS = 1_700_000_100, 300
_TABLE = encode("located-weights/1")


class BrittleStore(MemoryStore):
    """A disk that takes so many writes, and then none any more."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.broke = trio.Event()

    async def write(self, *changes: Change) -> None:
        if self.left == 0:
            self.broke.set()
            await trio.sleep_forever()
        if self.left is not None:
            self.left -= 1
        await super().write(*changes)

    def mend(self) -> None:
        self.left, self.broke = None, trio.Event()


class Estate:
    """An owner's folder, and what is on its disk: both outlive it."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.folder, self.now = folder, float(START)
        self.inbox = folder / "alerts"
        self.inbox.mkdir(parents=True)
        write_link(folder / "feed.link", new_link("feed", private=True))
        self.daemon = FakeDaemon(folder / "daemon.sock")
        self.settings = OwnerSettings(
            state=str(folder / "state"),
            feed=str(folder / "feed.link"),
            interval=SECONDS,
            daemon=OwnersDaemonSection(socket=str(folder / "daemon.sock")),
            input=OwnersInputSection(**{"directory": str(self.inbox), **given}),
        )
        (folder / "state").mkdir(mode=0o700)
        self.env = replace(system_environment(), now=lambda: self.now, look_every=0.005)
        self.store = BrittleStore()
        self.counters = Counters(OWNER_COUNTERS)
        self.seeds = open_seeds(self.settings, os.urandom)
        self.owner: FeedOwner
        self.batches = BatchFolder(folder / "state" / "batches")

    @property
    def seed(self) -> Seed:
        return self.seeds.now

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FeedOwner]:
        """Run the owner for the block; the end is as sudden as a kill."""
        self.owner = owner = FeedOwner(self.settings, self.seeds, self.store, self.env, self.counters)
        async with trio.open_nursery() as nursery:
            await nursery.start(owner.run)
            yield owner
            nursery.cancel_scope.cancel()

    def put(self, name: str, text: str) -> None:
        """Put a file into the folder, whole at once."""
        part = self.inbox / f".{name}"
        part.write_text(text)
        part.rename(self.inbox / name)

    async def until(self, holds: Callable[[], bool]) -> None:
        with trio.fail_after(20):
            while not holds():  # noqa: ASYNC110 - counters tell nobody
                await trio.sleep(0.005)

    async def next_batch(self) -> None:
        """Let an interval pass, and wait until all batches up to now are in the daemon's outbox."""
        self.now += SECONDS
        await self.until(self._is_up_to_date)

    def _is_up_to_date(self) -> bool:
        newest = self.batches.newest()
        if newest is None or self.owner.pool.progress.published < newest:
            return False
        return self.batches.read(newest)[1].batch.end == self.now - self.now % SECONDS

    def signed(self) -> dict[str, list[int]]:
        """Check all batches, each after the one before, and return in which each message is."""
        found: dict[str, list[int]] = {}
        previous: Batch | None = None
        handovers = self.batches.handovers()
        first = check_handovers(handovers)[0].old if handovers else self.seed.public()
        keys = OwnerKeys.read(first, handovers)
        for number in sorted(self.batches.numbers()):
            owner, feed = self.batches.read(number)
            assert owner == keys.of(number)
            if previous is not None:
                check_next(feed.batch, previous)
                assert feed.batch.body.start == previous.end
            previous = feed.batch
            for entry in entries_of(feed.root):
                found.setdefault(entry.message.id, []).append(number)
        return found

    async def until_published(self, *numbers: int) -> None:
        """Wait until the network took just these batches, each once and in this order."""
        await self.until(lambda: len(self._published()) >= len(numbers))
        assert self._published() == [*numbers]

    def _published(self) -> list[int]:
        assembly, found = Assembly(), []
        for at, (_, payload) in enumerate(self.daemon.published):
            whole = assembly.take(payload, at + 1)
            if whole is not None and whole[1 : 1 + len(_TABLE)] != _TABLE:
                found.append(read_batch(whole)[1].body.number)
        return found
