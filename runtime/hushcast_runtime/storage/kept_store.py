"""What a program keeps of what was published, for those who come later: on disk until its days are over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec
import trio

from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Counter, decoder, encode
from hushcast_protocol.content.kept_shares import (
    TRUNK_DAY_SIZE,
    KeptEntry,
    KeptShares,
    day_of_trunk,
    trunk_day,
)
from hushcast_protocol.content.messages import MAX_BODY, Message, check_message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Records, Store, record_reader

PAGE = 512 * 1024  # bytes of messages after which the next are left to another question
READ_AT_ONCE = 15  # messages read at once: of the largest, 4 MiB
FORGOTTEN_AT_ONCE = 1024  # messages that one step forgets: some 5 ms
_ID = 32  # bytes of a message's id


_KIND = RecordKind(
    "kept",
    StateOwner.SERVER,
    StateOwner.BROKER,
    holds="what is kept for those who come later: of each message its size, and who handed it in",
    lifetime=f"until its day is over for as long as the configuration says, {MAX_DAYS_KEPT} days at most",
)
_MESSAGE = RecordKind(
    "kept-message",
    StateOwner.SERVER,
    StateOwner.BROKER,
    holds="the messages that are kept for those who come later, sealed, with their tokens",
    lifetime="as long as what is known of them",
    bound="what the configuration says",
)


class _StoredEntry(msgspec.Struct, frozen=True, array_like=True):
    size: Counter
    giver: bytes
    mark: bytes


_decode_entry = record_reader(_StoredEntry, "kept")
_decode_message: Callable[[bytes], Message] = decoder(Message, "message", 2 * MAX_BODY)


class KeptStore:
    """What one program keeps.

    A trunk's day may have a *mark*, by which it is asked for where not by the trunk.
    """

    def __init__(self, most: int, context: Context) -> None:
        """`most` is for how many bytes there is room (`KeptShares`)."""
        self._store = context.store
        self._counters = context.counters
        self._shares = KeptShares(most)
        self._marks: dict[bytes, bytes] = {}  # by trunk's day
        self._names: dict[bytes, bytes] = {}  # by mark

    @property
    def size(self) -> int:
        """The bytes that are kept, with what counts beside them."""
        return self._shares.size

    async def load(self) -> None:
        """Take up what was kept before a restart."""
        await restore(self._store, _KIND, self._take_up)

    def _take_up(self, key: bytes, value: bytes) -> None:
        stored = _decode_entry(value)
        if stored.size > MAX_BODY:
            raise DecodeError("what is kept is larger than any message")
        name = sized(key, TRUNK_DAY_SIZE + _ID)[:TRUNK_DAY_SIZE]
        entry = KeptEntry(stored.size, stored.giver, 0)
        # A smaller room than before gives way at once.
        self._store.write_soon(*self._hold(name, key[TRUNK_DAY_SIZE:], entry, stored.mark))

    def mark_of(self, name: bytes) -> bytes | None:
        """Return the mark of a trunk's day, if anything is kept of it."""
        return self._marks.get(name)

    def find(self, mark: bytes) -> bytes | None:
        """Return the trunk's day that has a mark, if anything is kept of it."""
        return self._names.get(mark)

    def keep(self, message: Message, giver: bytes = b"", mark: bytes = b"") -> list[Change]:
        """Keep a message that is not kept yet, by its first token; return what this changes in the store.

        What gives way is in that, too, and may be the message itself. `giver` names who handed it in, apart
        from the day.
        """
        name = trunk_day(message.day, message.tokens[0])
        if self._shares.find(name, message.id) is not None:
            return []
        key, size = name + message.id, len(message.body)
        giver = message.day.to_bytes(8, "big") + giver
        self._counters.add("messages_kept")
        changes = [
            Change(_KIND, key, encode(_StoredEntry(size, giver, mark))),
            Change(_MESSAGE, key, encode(message)),
        ]
        return changes + self._hold(name, message.id, KeptEntry(size, giver, 0), mark)

    def _hold(self, name: bytes, message: bytes, entry: KeptEntry, mark: bytes) -> list[Change]:
        if mark:
            self._marks[name], self._names[mark] = mark, name
        changes: list[Change] = []
        for of, gone, what in self._shares.add(name, message, entry):
            self._counters.add("messages_kept_gave_way")
            changes += self._gone(of, gone, what.size)
        return changes

    def _gone(self, name: bytes, message: bytes, size: int) -> list[Change]:
        if name not in self._shares:
            self._names.pop(self._marks.pop(name, b""), None)
        key = name + message
        return [Change(_KIND, key, None), Change(_MESSAGE, key, None, size)]

    async def read(self, name: bytes, after: bytes | None) -> tuple[list[Message], bytes | None]:
        """Return some messages of a trunk's day, and what `after` is to be for those behind them.

        In the order of their ids, `PAGE` bytes and one more; `None` at first, and where there are no more.
        """
        await self._store.write()  # it may have come a moment ago
        found: list[Message] = []
        size = 0
        while True:
            records = await self._store.scan(_MESSAGE, name, after, READ_AT_ONCE)
            for key, value in records:
                if size >= PAGE:
                    return found, after
                after = key
                if (message := self._read(key, value)) is not None:
                    found.append(message)
                    size += len(value)
            if len(records) < READ_AT_ONCE:
                return found, None

    def _read(self, key: bytes, value: bytes) -> Message | None:
        """Return a message that is kept, unless the disk has damaged it."""
        name, one = key[:TRUNK_DAY_SIZE], key[TRUNK_DAY_SIZE:]
        if self._shares.find(name, one) is None:
            return None
        with suppress(PeerError):
            message = _decode_message(value)
            check_message(message)
            if trunk_day(message.day, message.tokens[0]) + message.id == key:
                return message
        return None

    async def lapse(self, first: int) -> None:
        """Forget the days before one, some messages at a time; whoever calls is certain of the time."""
        await forget_days(first, self._shares, self._gone, self._store, _MESSAGE)


async def forget_days(
    first: int,
    shares: KeptShares,
    gone: Callable[[bytes, bytes, int], Iterable[Change]],
    store: Store,
    messages: RecordKind,
) -> None:
    """Forget what is kept of days before one, some messages at a time, while others may give way.

    `gone` returns what it changes in the store that a message of a trunk's day, of so many bytes, is not kept
    any more. What is left of `messages` of those days is of some of which what was known was damaged.
    """
    count = 0
    for name in shares.before(first):
        for message in shares.ids(name):
            if shares.find(name, message) is None:
                continue  # it gave way since the last step
            store.write_soon(*gone(name, message, shares.remove(name, message).size))
            count += 1
            if count % FORGOTTEN_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
    async for key, value in Records(store, messages, at_once=1):
        if day_of_trunk(key) >= first:
            return
        store.write_soon(Change(messages, key, None, len(value)))
