"""Messages that wait for a batch, on disk; which were taken before; and how far batches are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import trio

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.spatial.located_messages import MAX_PAYLOAD, LocatedMessage
from hushcast_protocol.spatial.located_requests import DAY
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

MAX_WAITING = 65_536  # messages that wait: those of four batches
MAX_WAITING_BYTES = 32 * 1024 * 1024  # bytes of them: as much
MAX_KNOWN = 200_000  # messages that are known again: a hash and a day of each, 60 bytes
KNOWN_FOR = 30  # days since a message was last there: alert files keep what is over for weeks
_NAME = 16  # bytes of a hash that stands for an id

WAITING = RecordKind(
    "waiting",
    StateOwner.OWNER,
    holds="messages that wait for a batch, by a hash of their id",
    lifetime="until they are in one",
    bound=f"{MAX_WAITING:,}, of {MAX_WAITING_BYTES // 1024**2} MiB",
)
KNOWN = RecordKind(
    "known",
    StateOwner.OWNER,
    holds="which messages were taken: hashes of id and content, and a day",
    lifetime=f"{KNOWN_FOR} days since they were last there",
    bound=f"{MAX_KNOWN:,}",
)
SIGNED = RecordKind(
    "signed",
    StateOwner.OWNER,
    holds="the last batch that was signed, and that was published; when words were weighed",
    lifetime="until replaced",
    bound="1",
)


class SignedProgress(msgspec.Struct, frozen=True):
    """How far batches are: signed, published, messages in all of them, and when words were weighed."""

    signed: int = 0
    published: int = 0
    said: int = 0
    weighed: int = 0
    """Messages there had been when words were weighed."""
    version: int = 0
    """Of the table by then."""


class _Known(msgspec.Struct, frozen=True):
    content: bytes
    day: int


_read_progress = record_reader(SignedProgress, "signed", "batches might be signed twice: ")
_read_known = msgspec.msgpack.Decoder(_Known).decode
_read_waiting: Callable[[bytes], LocatedMessage] = decoder(LocatedMessage, "message", MAX_PAYLOAD + 1024)


class MessagePool:
    """What waits, in the order in which it came; one message of each id."""

    def __init__(self, store: Store, env: Environment, counters: Counters) -> None:
        self._store, self._env, self._counters = store, env, counters
        self._waiting: dict[bytes, LocatedMessage] = {}
        self._known: dict[bytes, _Known] = {}
        self._size = 0
        self._changed = ChangeSignal()
        self.progress = SignedProgress()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def today(self) -> int:
        """The day, since 1970."""
        return int(self._env.now() // DAY)

    async def load(self) -> None:
        """Read all of it back; raise `StoreError`."""
        for _, value in await self._store.scan(SIGNED):
            self.progress = _read_progress(value)
        await restore(self._store, WAITING, self._take_back)
        await restore(self._store, KNOWN, self._know_again)

    def _take_back(self, key: bytes, value: bytes) -> None:
        one = _read_waiting(value)
        if key != _name(one):
            raise DecodeError("a message is kept under another's id")
        self._put(sized(key, _NAME), one)

    def _know_again(self, key: bytes, value: bytes) -> None:
        self._known[sized(key, _NAME)] = _read_known(value)

    async def take(self, messages: Iterable[LocatedMessage], *changes: Change) -> None:
        """Take messages that were not taken before, with other changes; durable on return.

        The one of an id that comes later is in the place of one that still waits. While there is no room,
        this waits.
        """
        for one in messages:
            name, known = _name(one), _Known(_content(one), self.today)
            before = self._known.get(name)
            if before is not None and before.content == known.content:
                self._counters.add("messages_again")
                if before.day != known.day:
                    self._remember(name, known)
                    self._store.write_soon(Change(KNOWN, name, _encode(known)))
                continue
            while len(self._waiting) >= MAX_WAITING or self._size >= MAX_WAITING_BYTES:
                await self._changed.wait()
            self._counters.add("messages_taken")
            self._put(name, one)
            self._store.write_soon(Change(WAITING, name, encode(one)), Change(KNOWN, name, _encode(known)))
            self._remember(name, known)
        await self._store.write(*changes, *self._spared())

    def waiting(self) -> Sequence[LocatedMessage]:
        """Return what waits now, the oldest first."""
        return [*self._waiting.values()]

    async def signed(self, messages: Iterable[LocatedMessage], progress: SignedProgress) -> None:
        """Note that messages are in a batch; durable on return."""
        gone = []
        for one in messages:
            name = _name(one)
            if (there := self._waiting.get(name)) is not None and _content(there) == _content(one):
                self._size -= len(there.payload)
                del self._waiting[name]
                gone.append(Change(WAITING, name, None))
        await self.note(progress, *gone)
        self._changed.tell()

    async def note(self, progress: SignedProgress, *changes: Change) -> None:
        """Note how far batches are; durable on return."""
        self.progress = progress
        await self._store.write(Change(SIGNED, b"", _encode(progress)), *changes)

    async def expire(self) -> None:
        """Forget which messages were not there for long."""
        over = [name for name, one in self._known.items() if one.day + KNOWN_FOR < self.today]
        for at in range(0, len(over), 1024):
            some = over[at : at + 1024]
            for name in some:
                del self._known[name]
            self._store.write_soon(*(Change(KNOWN, name, None) for name in some))
            await trio.lowlevel.checkpoint()

    def _put(self, name: bytes, one: LocatedMessage) -> None:
        before = self._waiting.pop(name, None)
        self._size += len(one.payload) - (len(before.payload) if before is not None else 0)
        self._waiting[name] = one

    def _remember(self, name: bytes, known: _Known) -> None:
        self._known.pop(name, None)  # so that the oldest stand first
        self._known[name] = known

    def _spared(self) -> list[Change]:
        """Forget the oldest of what is too much."""
        gone = [name for name, _ in zip(self._known, range(len(self._known) - MAX_KNOWN), strict=False)]
        for name in gone:
            del self._known[name]
        return [Change(KNOWN, name, None) for name in gone]


_encode = msgspec.msgpack.Encoder().encode


def _name(message: LocatedMessage) -> bytes:
    return digest(Domain.LOCATED_ALERT, message.id.encode(), size=_NAME)


def _content(message: LocatedMessage) -> bytes:
    """Hash what a message says and where, whatever batch it is in."""
    return digest(Domain.LOCATED_GIVEN, encode((message.id, message.place)), message.payload, size=_NAME)
