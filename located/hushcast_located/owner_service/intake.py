"""What comes in: lines of a pipe, files of a folder, messages of a topic."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

import hushcast
from hushcast_located.input_lines import MAX_LINE
from hushcast_located.owner_service.message_pool import MessagePool
from hushcast_located.owner_service.settings import STDIN
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.spatial.alert_documents import MAX_DOCUMENT, is_document, read_document
from hushcast_protocol.spatial.located_messages import LocatedMessage, read_wordless
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.files import read_most
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

MAX_FILES = 10_000  # of a folder; of more the rest waits until others are gone
LOOK_EVERY = 2.0  # seconds between looks into the folder
_READ = 65_536  # bytes of a pipe that are read at once

FILE = RecordKind(
    "file",
    StateOwner.OWNER,
    holds="which files of the folder were read: their names, sizes and times",
    lifetime="until the file is gone",
    bound=f"{MAX_FILES:,}",
)


@dataclass
class GivenReader:
    """Reads what somebody gave, and counts what is no message."""

    env: Environment
    counters: Counters

    async def read(self, data: bytes) -> list[LocatedMessage]:
        """Return the messages of a document or of lines."""
        if is_document(data):
            return await self._document(data)
        found = [one for line in data.splitlines() if line.strip() and (one := self.line(line)) is not None]
        await trio.lowlevel.checkpoint()
        return found

    def line(self, data: bytes) -> LocatedMessage | None:
        """Return the message on a line; `None`, and told, for what is none."""
        try:
            if len(data) > MAX_LINE:
                raise UsageError(f"it is longer than {MAX_LINE:,} bytes")
            return read_wordless(data)
        except UsageError:
            self.refuse_line()
            return None

    async def _document(self, data: bytes) -> list[LocatedMessage]:
        try:
            found = await self.env.compute(read_document, data)
        except UsageError:
            self.refuse_document()
            return []
        self.counters.add("alerts_without_place", found.without_place)
        self.counters.add("alerts_not_for_all", found.not_for_all)
        return found.messages

    def refuse_line(self) -> None:
        """Count a line that is no message, and tell."""
        self.counters.add("input_refused")
        log.warning("a line is no message: it is left out")

    def refuse_document(self) -> None:
        """Count a document that cannot be read, and tell."""
        self.counters.add("input_refused")
        log.warning("a file of alerts cannot be read: it is left out")


@dataclass
class LineIntake:
    """Lines from a pipe, or from standard input."""

    where: str
    pool: MessagePool
    given: GivenReader

    async def run(self) -> None:
        """Take lines until cancelled, or until standard input ends.

        What was read and is not on disk yet is lost in a crash: a pipe has nobody who sends it again.
        """
        async with _opened(self.where) as parts:
            rest, is_too_long = b"", False
            async for part in parts:
                *lines, rest = (rest + part).split(b"\n")
                if is_too_long:  # up to the end of that line
                    lines, rest, is_too_long = lines[1:], rest if lines else b"", not lines
                if len(rest) > MAX_LINE:
                    self.given.refuse_line()
                    rest, is_too_long = b"", True
                found = [one for line in lines if line.strip() and (one := self.given.line(line)) is not None]
                if found:
                    await self.pool.take(found)


@asynccontextmanager
async def _opened(where: str) -> AsyncIterator[AsyncIterator[bytes]]:
    if where == STDIN:
        yield _from_stdin()
        return
    path = Path(where)
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    if not stat.S_ISFIFO(path.stat().st_mode):
        raise UsageError(f"{path} is there and no pipe: name another one")
    # Open for writing, too: else it ends whenever nobody writes.
    async with trio.lowlevel.FdStream(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)) as stream:
        yield _from_pipe(stream)


async def _from_pipe(stream: trio.lowlevel.FdStream) -> AsyncIterator[bytes]:
    while True:
        yield await stream.receive_some(_READ)


async def _from_stdin() -> AsyncIterator[bytes]:
    # In a thread, as standard input may be a file, which nothing can wait for.
    while part := await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), _READ, abandon_on_cancel=True):
        yield part
    yield b"\n"  # the last line may have no end


class _Seen(msgspec.Struct, frozen=True, array_like=True):
    size: int
    time: int


class FolderIntake:
    """Files of a folder: each is read once, and again when it has changed."""

    def __init__(self, folder: Path, store: Store, pool: MessagePool, given: GivenReader) -> None:
        self._folder, self._store, self._pool, self._given = folder, store, pool, given
        self._seen: dict[bytes, _Seen] = {}
        self._is_told = False

    async def load(self) -> None:
        """Read back which files were read."""
        await restore(self._store, FILE, self._take_back)

    def _take_back(self, name: bytes, value: bytes) -> None:
        self._seen[name] = _read_seen(value)

    async def run(self) -> None:
        """Look again and again until cancelled."""
        while True:
            await self.look()
            await trio.sleep(LOOK_EVERY)

    async def look(self) -> None:
        """Take what is new, and forget files that are gone."""
        there = await trio.to_thread.run_sync(self._files)
        if there is None:
            return
        gone = [name for name in self._seen if name not in there]
        for name in gone:
            del self._seen[name]
        self._store.write_soon(*(Change(FILE, name, None) for name in gone))
        for name, seen in there.items():
            if self._seen.get(name) != seen:
                await self._read(name, seen)

    def _files(self) -> dict[bytes, _Seen] | None:
        """Return the files that are there, by name; `None` where there is no folder to look into."""
        try:
            found = dict(_files_of(self._folder))
        except OSError:
            if not self._is_told:
                log.warning("the folder of messages cannot be read")
            self._is_told = True
            return None
        self._is_told = False
        return found

    async def _read(self, name: bytes, seen: _Seen) -> None:
        try:
            data = await trio.to_thread.run_sync(read_most, self._folder / os.fsdecode(name), MAX_DOCUMENT)
        except UsageError:
            return  # it is gone, or not to be read now: looked at again
        messages = []
        if len(data) > MAX_DOCUMENT:
            self._given.refuse_document()
        else:
            messages = await self._given.read(data)
        self._seen[name] = seen
        await self._pool.take(messages, Change(FILE, name, msgspec.msgpack.encode(seen)))


_read_seen = msgspec.msgpack.Decoder(_Seen).decode


def _files_of(folder: Path) -> Iterator[tuple[bytes, _Seen]]:
    """Yield names of files, and what tells that one has changed; not of those that begin with a dot."""
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            count += 1
            if count > MAX_FILES:
                return
            about = entry.stat(follow_symlinks=False)
            yield os.fsencode(entry.name), _Seen(about.st_size, about.st_mtime_ns)


@dataclass
class TopicIntake:
    """Messages of a topic, each lines or a document."""

    link: str
    pool: MessagePool
    given: GivenReader

    async def run(self, daemon: hushcast.Daemon) -> None:
        """Take what comes until cancelled; what is acknowledged is on disk."""
        async with daemon.subscribe(self.link, acknowledge="manual") as messages:
            log.info("messages are taken from the topic")
            async for message in messages:
                await self.pool.take(await self.given.read(message.payload))
                with suppress(hushcast.Refusal):  # the subscription was ended, and is begun anew
                    await messages.acknowledge(message)
