"""The inbox: messages for the local applications, kept until one of them has seen them or they expire."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import msgspec
import trio

from hushcast_protocol.bodies import Content
from hushcast_protocol.wire import encode
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Change, Store

MAX_AGE = 21 * 24 * 3600.0  # seconds that an unseen message is kept
MAX_INBOX = 64 * 1024 * 1024  # bytes of payload kept for one subscription
MAX_SEEN = 100_000  # message ids remembered for one subscription, against duplicates; 10 MB

_MESSAGE, _SEEN, _SHOWN = "inbox", "inbox-seen", "inbox-shown"


class Received(msgspec.Struct, frozen=True, array_like=True):
    """A message as an application gets it."""

    id: bytes
    payload: bytes
    received_at: float  # Unix seconds
    values: dict[str, str | int] = {}
    """Attributes, numbers as places on their grids."""
    author: bytes | None = None
    """The Ed25519 key whose signature holds."""


_decode = msgspec.msgpack.Decoder(Received).decode


@dataclass
class _Held:
    """What memory knows of one message on disk."""

    number: int
    size: int
    received_at: float


class Inbox:
    """One subscription's messages, numbered from 1 in order of arrival."""

    def __init__(self, subscription: bytes, env: Environment, store: Store, counters: Counters) -> None:
        self._subscription = subscription
        self._env = env
        self._store = store
        self._counters = counters
        self._held: deque[_Held] = deque()
        self._size = 0
        self._last = 0
        self._shown = 0
        self._seen: dict[bytes, int] = {}
        self._listeners: list[InboxListener] = []
        self._arrival = trio.Event()
        self._closed = False

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        prefix = self._subscription
        for _, value in await self._store.scan(_SHOWN, prefix):
            self._shown = self._last = int.from_bytes(value, "big")
        for key, value in await self._store.scan(_SEEN, prefix):
            self._seen[key[len(prefix) :]] = int.from_bytes(value, "big")
        for key, value in await self._store.scan(_MESSAGE, prefix):
            self._last = int.from_bytes(key[len(prefix) :], "big")
            message = _decode(value)
            self._hold(self._last, len(message.payload), message.received_at)

    def knows(self, message_id: bytes) -> bool:
        """Tell whether a message came before."""
        return message_id in self._seen

    async def put(self, message_id: bytes, day: int, content: Content) -> bool:
        """Take a message that is new; on return it is durable, and listeners hear of it.

        Returns whether it was new.
        """
        if self._closed or self.knows(message_id):
            return False
        received = Received(
            message_id, content.payload, self._env.now(), dict(content.values), content.author
        )
        self._seen[message_id] = day
        self._last += 1
        number = self._last
        await self._store.write(
            Change(_MESSAGE, self._key(number), encode(received)),
            Change(_SEEN, self._subscription + message_id, day.to_bytes(8, "big")),
        )
        self._hold(number, len(content.payload), received.received_at)
        self._counters.add("messages_delivered")
        self._make_room()
        self._arrival.set()
        self._arrival = trio.Event()
        return True

    def pass_over(self, message_id: bytes, day: int) -> bool:
        """Remember a message that was not wanted, so that it counts once; return whether it was new."""
        if self.knows(message_id):
            return False
        self._seen[message_id] = day
        self._store.write_soon(Change(_SEEN, self._subscription + message_id, day.to_bytes(8, "big")))
        self._make_room()
        return True

    def listen(self) -> InboxListener:
        """Return a listener that gets all unseen messages, then those to come. Close it when done."""
        listener = InboxListener(self, self._shown)
        self._listeners.append(listener)
        return listener

    def lapse(self, before_day: int) -> None:
        """Forget ids of days gone by, and messages that have grown too old."""
        gone = [message_id for message_id, day in self._seen.items() if day < before_day]
        for message_id in gone:
            del self._seen[message_id]
        self._store.write_soon(*(Change(_SEEN, self._subscription + name, None) for name in gone))
        self._make_room()

    def close(self) -> None:
        """End all listeners: the subscription is over."""
        self._closed = True
        self._arrival.set()

    async def erase(self) -> None:
        """Delete everything kept, what was being written included."""
        await self._store.write()
        changes = [
            Change(kind, key, None)
            for kind in (_MESSAGE, _SEEN, _SHOWN)
            for key, _ in await self._store.scan(kind, self._subscription)
        ]
        await self._store.write(*changes)

    def _key(self, number: int) -> bytes:
        return self._subscription + number.to_bytes(8, "big")

    def _hold(self, number: int, size: int, received_at: float) -> None:
        self._held.append(_Held(number, size, received_at))
        self._size += size

    def _make_room(self) -> None:
        oldest = self._env.now() - MAX_AGE
        lost = 0
        while self._held and (self._size > MAX_INBOX or self._held[0].received_at < oldest):
            lost += self._held[0].number > self._shown
            self._delete_first()
        self._counters.add("messages_lost_inbox", lost)
        while len(self._seen) > MAX_SEEN:
            first = next(iter(self._seen))
            del self._seen[first]
            self._store.write_soon(Change(_SEEN, self._subscription + first, None))

    def _delete_first(self) -> None:
        held = self._held.popleft()
        self._size -= held.size
        self._store.write_soon(Change(_MESSAGE, self._key(held.number), None))

    def _note_shown(self, number: int) -> None:
        if number <= self._shown or number > self._last:
            return
        self._shown = number
        self._store.write_soon(Change(_SHOWN, self._subscription, number.to_bytes(8, "big")))
        self._delete_seen_by_all()

    def _delete_seen_by_all(self) -> None:
        passed = min([self._shown, *(listener.position for listener in self._listeners)])
        while self._held and self._held[0].number <= passed:
            self._delete_first()


@dataclass
class InboxListener:
    """One application's way through the inbox."""

    _inbox: Inbox
    position: int
    _closed: bool = field(default=False, init=False)

    async def next(self) -> tuple[int, Received] | None:
        """Return the next message and its number, waiting for one; `None` when the subscription ended."""
        inbox = self._inbox
        while not inbox._closed:
            arrival = inbox._arrival
            records = await inbox._store.scan(
                _MESSAGE, inbox._subscription, inbox._key(self.position), limit=1
            )
            if records:
                key, value = records[0]
                self.position = int.from_bytes(key[len(inbox._subscription) :], "big")
                return self.position, _decode(value)
            await arrival.wait()
        return None

    def shown(self, number: int) -> None:
        """Note that the application has shown all messages up to `number`."""
        self._inbox._note_shown(number)

    def close(self) -> None:
        """Stop listening."""
        if not self._closed:
            self._closed = True
            self._inbox._listeners.remove(self)
            self._inbox._delete_seen_by_all()
