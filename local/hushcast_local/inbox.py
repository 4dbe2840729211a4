"""The inbox: messages for local applications, kept until acknowledged, or removed by age and size."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from hushcast_local.inbox_records import (
    MESSAGE,
    PROGRESS,
    SCAN,
    SEEN,
    STEP,
    HeldMessage,
    InboxMessage,
    Progress,
    ReportedGap,
    UnknownCursor,
    decode_message,
    decode_progress,
    erase,
)
from hushcast_local.settings import InboxSection
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.bodies import Content, reseal_label
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import Store

MAX_MESSAGES = 100_000  # kept for one subscription, whatever their size; each takes 120 bytes of memory
MAX_GAPS_TOLD = 256  # gaps that wait for an application that does not read
MAX_SEEN = 100_000  # message ids remembered for one subscription, against duplicates; 10 MB
MAX_PASSED_OVER = 100_000  # likewise of messages that were not wanted, apart, so that they evict no others

_ID = 32  # bytes of a message's id
_DAY = 8  # bytes of a day in the record of an id
_PASSED_OVER = b"p"  # after the day of a message that was not wanted


class Inbox:
    """One subscription's messages, numbered from 1 in order of arrival."""

    def __init__(
        self,
        subscription: bytes,
        env: Environment,
        store: Store,
        counters: Counters,
        retention: InboxSection | None = None,
    ) -> None:
        self._subscription = subscription
        self._env = env
        self._store = store
        self._counters = counters
        self.retention = retention or InboxSection()
        self.progress = Progress()
        self.last = 0
        """The newest message's cursor."""
        self.on_read: Callable[[bytes], None] = lambda message_id: None
        """Hears the id of each message that an application was shown, or is done with, once."""
        self._held: deque[HeldMessage] = deque()
        self._unread: deque[HeldMessage] = deque()
        self._size = 0
        self._seen: dict[bytes, int] = {}
        self.forgot_at = -math.inf
        """Unix seconds when ids of a past day were last forgotten: of what came before nobody can tell."""
        self._passed_over: dict[bytes, int] = {}
        self._listeners: list[InboxListener] = []
        self._arrival = trio.Event()
        self._closed = False

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        prefix = self._subscription
        await restore(self._store, PROGRESS, self._take_progress, prefix)
        await restore(self._store, SEEN, self._take_seen, prefix)
        await restore(self._store, MESSAGE, self._take_message, prefix, SCAN)
        newest = self._held[-1].number if self._held else 0
        self.last = max(newest, self.progress.gone, self.progress.shown)
        self._forget_acknowledged()

    def _take_progress(self, key: bytes, value: bytes) -> None:
        sized(key, len(self._subscription))
        self.progress = decode_progress(value)

    def _take_seen(self, key: bytes, value: bytes) -> None:
        day, passed_over = number(value[:_DAY]), value[_DAY:]
        if passed_over not in (b"", _PASSED_OVER):
            raise DecodeError("an id is kept for no reason")
        memory = self._passed_over if passed_over else self._seen
        memory[sized(key[len(self._subscription) :], _ID)] = day

    def _take_message(self, key: bytes, value: bytes) -> None:
        message = decode_message(value)
        self._hold(number(key[len(self._subscription) :]), len(value), message.received_at, message.id)

    def knows(self, message_id: bytes) -> bool:
        """Tell whether a message came before."""
        return message_id in self._seen or message_id in self._passed_over

    def put(self, message_id: bytes, day: int, content: Content, past_day: float | None = None) -> bool:
        """Take a message and return whether it was new; listeners get it as soon as it is on disk.

        Neither may be acknowledged before `durable` returns. A message and its reseals are one: the first
        that comes is taken.
        """
        if self._closed or self.knows(message_id):
            return False
        label = reseal_label(content.first_id or message_id, content)
        if self.knows(label) or (content.first_id is not None and self.knows(content.first_id)):
            self.pass_over(message_id, day)  # others may report this id, which is no gap here
            return False
        now, values = self._env.now(), dict(content.values)
        record = encode(InboxMessage(message_id, content.payload, now, values, content.author, past_day))
        seen = [message_id] if content.first_id is None else [message_id, label]
        self._seen.update(dict.fromkeys(seen, day))
        self.last += 1
        self._hold(self.last, len(record), now, message_id)
        self._counters.add("messages_delivered")
        self._store.write_soon(
            Change(MESSAGE, self._key(self.last), record),
            *(Change(SEEN, self._subscription + one, day.to_bytes(_DAY, "big")) for one in seen),
        )
        self._wake_listeners()
        self._make_room()
        return True

    async def durable(self) -> None:
        """Return once all that was put is on disk."""
        await self._store.write()

    def pass_over(self, message_id: bytes, day: int) -> bool:
        """Remember an unwanted message, so that it is counted once; return whether it was new."""
        if self._closed or self.knows(message_id):
            return False
        self._passed_over[message_id] = day
        record = day.to_bytes(_DAY, "big") + _PASSED_OVER
        self._store.write_soon(Change(SEEN, self._subscription + message_id, record))
        self._forget_oldest(self._passed_over, MAX_PASSED_OVER)
        return True

    def note_gap(self, message_id: bytes) -> bool:
        """Tell those who listen now of a message that was missed; return whether anybody does."""
        for listener in self._listeners:
            listener.gaps.append(ReportedGap(message_id))
        self._wake_listeners()
        return bool(self._listeners)

    def note_lost(self, count: int | None) -> None:
        """Tell those who listen now that messages were lost before they came; if nobody does, the next one.

        `None` says that nobody knows how many.
        """
        for listener in self._listeners:
            listener.miss(count)
        self._wake_listeners()
        if not self._listeners and not self._closed:
            self.progress.lost += count or 0
            self.progress.is_more_lost |= count is None
            self._store.write_soon(self._progress_record())

    def listen(self, since: int | None = None) -> InboxListener:
        """Return a listener that gets the messages kept after a cursor, then new ones. Close it when done.

        Without a cursor it begins after the last message shown. Acknowledged messages are not shown again.
        Raises `Refusal` if no message has had this cursor yet.
        """
        if since is not None:
            self.check_cursor(since)
        begin = self.progress.shown if since is None else since
        listener = InboxListener(self, max(begin, self.progress.acknowledged))
        self._listeners.append(listener)
        if self.progress.lost or self.progress.is_more_lost:
            listener.miss(None if self.progress.is_more_lost else self.progress.lost)
            self.progress.lost, self.progress.is_more_lost = 0, False
            self._store.write_soon(self._progress_record())
        return listener

    def check_cursor(self, cursor: int) -> None:
        """Raise `Refusal` unless a message had this cursor, or it is 0."""
        if cursor > self.last:
            raise UnknownCursor(
                f"this subscription has come to cursor {self.last}, not yet to {cursor}: a subscription that "
                "was ended and begun anew counts from 1 again"
            )

    async def acknowledge(self, cursor: int) -> None:
        """Acknowledge all messages up to a cursor; durable on return. Raises `Refusal` as `check_cursor`."""
        self.check_cursor(cursor)
        self._note_acknowledged(cursor)
        await self._store.write()

    def describe(self) -> dict[str, int]:
        """Return the newest cursor, the applications' positions, and how many messages retention dropped."""
        progress = self.progress
        return {
            "cursor": self.last,
            "shown": progress.shown,
            "acknowledged": progress.acknowledged,
            "dropped": progress.dropped,
        }

    async def lapse(self, before_day: int) -> None:
        """If the time is certain, expire ids of past days, and messages too old, or acknowledged before."""
        if not self._env.is_certain():
            return
        for memory in (self._seen, self._passed_over):
            if gone := [message_id for message_id, day in memory.items() if day < before_day]:
                self.forgot_at = self._env.now()
            for begin in range(0, len(gone), STEP):
                step = gone[begin : begin + STEP]
                for message_id in step:
                    memory.pop(message_id, None)
                self._store.write_soon(*(Change(SEEN, self._subscription + name, None) for name in step))
                await trio.lowlevel.checkpoint()
        while self._make_room() or self._forget_acknowledged():
            await trio.lowlevel.checkpoint()

    def _wake_listeners(self) -> None:
        self._arrival.set()
        self._arrival = trio.Event()

    def close(self) -> None:
        """End all listeners: the subscription is over."""
        self._closed = True
        self._arrival.set()

    async def erase(self) -> None:
        """Delete everything kept, including pending writes."""
        await self._store.write()
        await erase(self._store, self._subscription)

    def _key(self, number: int) -> bytes:
        return self._subscription + number.to_bytes(8, "big")

    def _hold(self, number: int, size: int, received_at: float, message_id: bytes) -> None:
        held = HeldMessage(number, size, received_at, message_id)
        self._held.append(held)
        if number > self.progress.shown:
            self._unread.append(held)
        self._size += size

    def _is_too_much(self, oldest: float) -> bool:
        too_many = self._size > self.retention.max_bytes or len(self._held) > MAX_MESSAGES
        return bool(self._held) and (too_many or self._held[0].received_at < oldest)

    def _make_room(self) -> bool:
        """Remove what is too old or too much; return whether there may be more than was removed at once."""
        if self._closed:
            return False
        oldest = self._env.now() - self.retention.max_age if self._env.is_certain() else -math.inf
        changes: list[Change] = []
        dropped = 0
        while len(changes) < STEP and self._is_too_much(oldest):
            dropped += self._held[0].number > self.progress.acknowledged
            changes.append(self._delete_first())
        if changes:
            self.progress.dropped += dropped
            self._counters.add("messages_lost_inbox", dropped)
            self._store.write_soon(*changes, self._progress_record())
        self._forget_oldest(self._seen, MAX_SEEN)
        return len(changes) == STEP

    def _forget_oldest(self, memory: dict[bytes, int], most: int) -> None:
        while len(memory) > most:
            first = next(iter(memory))
            del memory[first]
            self._store.write_soon(Change(SEEN, self._subscription + first, None))

    def _delete_first(self) -> Change:
        held = self._held.popleft()
        self._size -= held.size
        self.progress.gone = held.number
        if self._unread and self._unread[0] is held:
            self._unread.popleft()
        return Change(MESSAGE, self._key(held.number), None)

    def _progress_record(self) -> Change:
        return Change(PROGRESS, self._subscription, encode(self.progress))

    def _note_shown(self, number: int) -> None:
        if self.progress.shown < number <= self.last and not self._closed:
            self._read_to(number)
            self._store.write_soon(self._progress_record())

    def _read_to(self, number: int) -> None:
        self.progress.shown = max(self.progress.shown, number)
        while self._unread and self._unread[0].number <= self.progress.shown:
            self.on_read(self._unread.popleft().id)

    def _note_acknowledged(self, number: int) -> None:
        if self.progress.acknowledged < number <= self.last and not self._closed:
            self.progress.acknowledged = number
            self._read_to(number)
            self._store.write_soon(self._progress_record())
            self._forget_acknowledged()

    def _forget_acknowledged(self) -> bool:
        """Delete acknowledged messages that all current listeners have got; return as `_make_room`."""
        if self._closed:
            return False
        passed = min([self.progress.acknowledged, *(listener.position for listener in self._listeners)])
        changes: list[Change] = []
        while len(changes) < STEP and self._held and self._held[0].number <= passed:
            changes.append(self._delete_first())
        if changes:
            self._store.write_soon(*changes, self._progress_record())
        return len(changes) == STEP


@dataclass(eq=False)
class InboxListener:
    """One application's cursor in the inbox; `position` is that of the last message it got."""

    _inbox: Inbox
    position: int
    gaps: deque[ReportedGap] = field(default_factory=lambda: deque(maxlen=MAX_GAPS_TOLD), init=False)
    _missed: int = field(default=0, init=False)
    _has_missed_more: bool = field(default=False, init=False)
    _is_to_hear: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)

    async def next(self) -> tuple[int, InboxMessage] | ReportedGap | None:
        """Return the next message and its cursor, or gap, waiting for one; `None` when it all ended."""
        while not (taken := await self.take(1)) and not self.is_over:
            pass
        return taken[0] if taken else None

    async def take(self, most: int) -> list[tuple[int, InboxMessage] | ReportedGap]:
        """Return the next messages with their cursors, or a gap, waiting for one.

        At most `most` of them, which are read at once, and never more than a few MB. Nothing when it all
        ended, and, once, when some were lost before they came, of which `lost` tells.
        """
        inbox = self._inbox
        while not self.is_over:
            if self._is_to_hear:
                self._is_to_hear = False
                return []
            if self.gaps:
                return [self.gaps.popleft()]
            arrival, begin = inbox._arrival, inbox._key(self.position)
            records = await inbox._store.scan(MESSAGE, inbox._subscription, begin, min(most, SCAN))
            if records:
                return [self._taken(key, value) for key, value in records]
            if inbox._held and inbox._held[-1].number > self.position:
                await inbox.durable()
                continue
            await arrival.wait()
        return []

    def _taken(self, key: bytes, value: bytes) -> tuple[int, InboxMessage]:
        number = int.from_bytes(key[len(self._inbox._subscription) :], "big")
        self._missed += number - self.position - 1
        self.position = number
        return number, decode_message(value)

    def miss(self, count: int | None) -> None:
        """Take notice of messages that were lost before they came; `None`: nobody knows how many."""
        self._missed += count or 0
        self._has_missed_more |= count is None
        self._is_to_hear = True

    def lost(self, ahead: bool = True) -> int | None:
        """Return how many messages were lost or removed before this listener got them, since last asked.

        `None` where nobody knows. Without `ahead` only of those before what it got last: the others are told
        next time.
        """
        removed = max(0, self._inbox.progress.gone - self.position) if ahead else 0
        lost, self._missed = self._missed + removed, 0
        self.position += removed
        is_more, self._has_missed_more = self._has_missed_more, False
        self._is_to_hear = False
        return None if is_more else lost

    @property
    def is_over(self) -> bool:
        """Whether the subscription ended."""
        return self._inbox._closed

    def shown(self, number: int, acknowledged: bool = False) -> None:
        """Note that the application has shown all messages up to `number`, or needs them no more."""
        self._inbox._note_shown(number)
        if acknowledged:
            self._inbox._note_acknowledged(number)

    def close(self) -> None:
        """Stop listening."""
        if not self._closed:
            self._closed = True
            self._inbox._listeners.remove(self)
            self._inbox._forget_acknowledged()
