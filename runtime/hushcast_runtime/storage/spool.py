"""The spool: messages this daemon took over and has not yet seen acknowledged by their next hop.

A message for one next hop is one record. One for several is a body, stored and held once, and for each next
hop a small reference to it; the body goes with the last of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

import msgspec

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.hops import HOP_SIZE, Hop, HopMessage
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, set_aside, tell
from hushcast_runtime.storage.spool_bodies import SharedBody, SpooledBody
from hushcast_runtime.storage.spool_records import (
    BodyReference,
    key_of,
    place_of,
    read_record,
    reference,
)
from hushcast_runtime.storage.store import Records, Store, damaged

MAX_SPOOL = 256 * 1024 * 1024  # bytes of bodies; a thousand of the largest, 230,000 of the smallest
MAX_SHARE = MAX_SPOOL // 8  # bytes for one next hop: a host that stays away must not stop all the others
REFERENCE = 640  # bytes that a reference counts: record, index and what memory knows of it
READ_AT_ONCE = 64 * 1024  # bytes of bodies after which a read back ends: a turn of the loop sends them
_EXPIRED_AT_ONCE = 2048  # messages looked at in one step, some 4 ms; a spool holds up to 400,000
_SCAN = 15  # records read at once: of the largest, 4 MiB

_KIND = RecordKind(
    "spool",
    StateOwner.RELAY,
    StateOwner.SERVER,
    StateOwner.BROKER,
    holds="messages that wait for a next hop, a pseudonym or a child, each in its order",
    lifetime="until acknowledged, or their day has lapsed, in a box the day after",
    bound=f"{MAX_SPOOL // 2**20} MiB of bodies, {MAX_SHARE // 2**20} MiB for each that they wait for",
)
_BODY = RecordKind(
    "spool-body",
    StateOwner.RELAY,
    StateOwner.SERVER,
    StateOwner.BROKER,
    holds="bodies of messages that several wait for, once",
    lifetime="until none of these messages waits",
)


class SpooledMessage(msgspec.Struct, frozen=True, gc=False):
    """A message waiting for its next hop to acknowledge it; `key` is its place in the store."""

    key: bytes
    message: Message
    size: int
    """Bytes of the body, which is what counts for queues and windows: asked for many times."""
    shared: SharedBody | None = None
    """The body, where it is one of several that wait with it."""


def by_hop(placed: Iterable[tuple[Hop, SpooledMessage]]) -> dict[Hop, list[SpooledMessage]]:
    """Return spooled messages by next hop, in their order."""
    found: dict[Hop, list[SpooledMessage]] = {}
    for hop, item in placed:
        if (items := found.get(hop)) is None:
            found[hop] = [item]
        else:
            items.append(item)
    return found


class SpoolMove(msgspec.Struct, frozen=True, gc=False):
    """A spooled message that is to wait for another next hop, in another form."""

    item: SpooledMessage
    hop: Hop
    message: Message
    stays: bool = False
    """Whether it waits where it did, too."""


class Spool:
    """Messages by next hop, in order of arrival."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[bytes, SpooledBody] = {}  # by key
        self._size = 0
        self.shares: dict[Hop, int] = {}
        """Bytes of the bodies that wait, by next hop; to be read."""
        self._next = 0

    def __len__(self) -> int:
        """Return how many messages wait, counted for each hop that they wait for."""
        return len(self._held)

    @property
    def size(self) -> int:
        """Bytes held: bodies, references to them, and what is reserved."""
        return self._size

    def is_full(self, more: int) -> bool:
        """Tell whether `more` bytes would pass the cap."""
        return self._size + more > MAX_SPOOL

    def has_share(self, hop: Hop, more: int) -> bool:
        """Tell whether `more` bytes for one next hop leave the others their part."""
        return self.shares.get(hop, 0) + more <= MAX_SHARE

    def is_roomy(self, size: int, sends: Sequence[HopMessage]) -> bool:
        """Tell whether messages with bodies of `size` bytes may be put, even all of them to one next hop."""
        if self._size + size + len(sends) * REFERENCE > MAX_SPOOL:
            return False
        return all(self.has_share(hop, size) for hop in {send.hop for send in sends})

    def takes(self, size: int, hops: int) -> int:
        """Return for how many of `hops` next hops there is room for a message of `size` bytes."""
        room = MAX_SPOOL - self._size - size
        if room < 0:
            return 0
        return hops if hops == 1 else min(hops, max(1, room // REFERENCE))

    def reserve(self, size: int) -> None:
        """Keep bytes free for a message that is to come; negative, if it came."""
        self._size += size

    async def load(self, check: Callable[[Message], object] = check_message) -> list[Hop]:
        """Count what was held before a restart; return the next hops that something waits for.

        `check` raises a `PeerError` for a message that a next hop would not take; it is set aside.
        """
        references: dict[bytes, list[tuple[bytes, BodyReference]]] = {}

        def take(key: bytes, value: bytes) -> None:
            hop, number = place_of(key)
            kept = read_record(value)
            if isinstance(kept, BodyReference):
                references.setdefault(key_of(kept.number), []).append((key, kept))
                self._next = max(self._next, kept.number + 1)  # its body's number may be a later one
            else:
                check(kept.message())
                self._hold(hop, key, SpooledBody(len(kept.body), kept.day))
            self._next = max(self._next, number + 1)

        await restore(self._store, _KIND, take, at_once=_SCAN)
        async for name, data in Records(self._store, _BODY, at_once=_SCAN):
            waiting = references.pop(name, [])
            if not waiting or not self._take_body(data, waiting, check):
                await self._without_body(waiting)
                self._store.write_soon(Change(_BODY, name, None, len(data)))
        for waiting in references.values():
            await self._without_body(waiting)
        return list(self.shares)

    def _take_body(
        self, data: bytes, waiting: list[tuple[bytes, BodyReference]], check: Callable[[Message], object]
    ) -> bool:
        """Hold what refers to a body; return false if it is damaged, or they do not agree on it."""
        _, first = waiting[0]
        try:
            check(first.message(data))
        except PeerError:
            return False
        if any((one.size, one.id, one.day) != (len(data), first.id, first.day) for _, one in waiting):
            return False
        body = SpooledBody(len(data), first.day, first.number, REFERENCE)
        for key, _ in waiting:
            self._hold(place_of(key)[0], key, body)
        return True

    async def _without_body(self, waiting: list[tuple[bytes, BodyReference]]) -> None:
        if waiting:
            await set_aside(self._store, _KIND, [(key, encode(one)) for key, one in waiting])
            tell(_KIND, len(waiting))

    def put(self, sends: Iterable[HopMessage], *settled: Change) -> list[tuple[Hop, SpooledMessage]]:
        """Hold messages, together with what this settles; return them by next hop.

        They may be sent at once, and are taken over, which is what an acknowledgement says, once `durable`.
        """
        changes = list(settled)
        placed = self.take(list(sends), changes)
        self._store.write_soon(*changes)
        return [(hop, item) for hop, items in placed.items() for item in items]

    def take(self, sends: list[HopMessage], changes: list[Change]) -> dict[Hop, list[SpooledMessage]]:
        """Hold messages as `put` does, and leave it to the caller to write what is added to `changes`."""
        placed: dict[Hop, list[SpooledMessage]] = {}
        ids = [send.message.id for send in sends]
        copies = Counter(ids) if len(set(ids)) < len(ids) else {}  # most often each goes to one
        bodies: dict[bytes, SpooledBody] = {}
        last: Message | None = None
        shared: SharedBody | None = None
        record: Message | BodyReference | None = None
        written, body = 0, SpooledBody(0, 0)
        for send in sends:
            message, hop = send.message, send.hop
            if message is not last:
                last = message
                if copies.get(message.id, 1) == 1:
                    record, body = message, SpooledBody(len(message.body), message.day)
                    written = body.size
                else:
                    if message.id not in bodies:
                        bodies[message.id] = self._keep_body(message, changes)
                    body = bodies[message.id]
                    shared = body.share(message.body)
                    assert body.number is not None
                    record, written = reference(body.number, message), REFERENCE
            key = self._place(hop, body)
            item = SpooledMessage(key, message, body.size, None if body.number is None else shared)
            if (items := placed.get(hop)) is None:
                placed[hop] = [item]
            else:
                items.append(item)
            changes.append(Change(_KIND, key, record, written, True))
        return placed

    async def durable(self) -> None:
        """Return once all that was put is on disk."""
        await self._store.write()

    async def move(self, moves: Iterable[SpoolMove]) -> list[tuple[Hop, SpooledMessage]]:
        """Let messages wait for other next hops, all in one commit; return them as `put` does."""
        moves = [move for move in moves if self.holds(move.item)]
        sends: list[HopMessage] = []
        placed: list[tuple[Hop, SpooledMessage]] = []
        changes: list[Change] = []
        for move in moves:
            body = self._held[move.item.key]
            if body.number is None and move.stays:
                self._set_apart(move.item, body, changes)
            if body.number is None:
                sends.append(HopMessage(move.hop, move.message))
            else:  # its body stays where it is
                key = self._place(move.hop, body)
                shared = body.share(move.message.body)
                placed.append((move.hop, SpooledMessage(key, move.message, len(move.message.body), shared)))
                changes.append(Change(_KIND, key, reference(body.number, move.message), REFERENCE, True))
        changes += self._release([move.item.key for move in moves if not move.stays])
        placed += self.put(sends, *changes)
        await self.durable()
        return placed

    def done(self, spooled: Iterable[SpooledMessage]) -> None:
        """Forget messages that were acknowledged, or given up."""
        self.forget([item.key for item in spooled])

    def forget(self, places: Iterable[bytes]) -> None:
        """Forget messages by their places."""
        self._store.write_soon(*self._release(places))

    def held(self) -> Iterator[tuple[bytes, int]]:
        """Yield the places of all messages, and the bytes that each takes, while nothing comes or goes."""
        return ((key, body.size + body.each) for key, body in self._held.items())

    def __contains__(self, place: bytes) -> bool:
        return place in self._held

    def holds(self, item: SpooledMessage) -> bool:
        """Tell whether a message still waits: it was neither acknowledged nor has it expired."""
        return item.key in self._held

    def expire(self, keeps: Callable[[Hop, int], bool]) -> Generator[None, None, int]:
        """Forget messages but for those whose next hop and day `keeps` says yes to; return how many.

        Pauses after each step of a few ms.
        """
        expired = 0
        for place, key in enumerate(list(self._held)):
            body = self._held.get(key)
            if body is not None and not keeps(Hop(key[:HOP_SIZE]), body.day):
                self.forget([key])  # one by one: no commit need take all of them
                expired += 1
            if place % _EXPIRED_AT_ONCE == _EXPIRED_AT_ONCE - 1:
                yield
        return expired

    async def waiting(
        self, hop: Hop, after: SpooledMessage | None = None, size: int = 0
    ) -> list[SpooledMessage]:
        """Return the next messages for `hop` behind `after`: at most 15, or `size` bytes and 15 more.

        None only where none wait there: those that expire meanwhile are passed over.
        """
        await self.durable()  # what was put is read only once that is committed
        found: list[SpooledMessage] = []
        last = None if after is None else after.key
        while True:
            records = await self._store.scan(_KIND, hop, last, _SCAN)
            for key, value in records:
                if (item := await self._read(key, value)) is not None:
                    found.append(item)
            found = [item for item in found if self.holds(item)]
            if not records or (found and sum(item.size for item in found) >= size):
                return found
            last = records[-1][0]

    async def read(self, place: bytes) -> Message | None:
        """Return the message at a place, if it still waits."""
        await self.durable()
        for key, value in await self._store.scan(_KIND, place, None, 1):
            if self._held.get(key) is not None and (item := await self._read(key, value)) is not None:
                return item.message
        return None

    async def _read(self, key: bytes, value: bytes) -> SpooledMessage | None:
        kept = read_record(value)
        if isinstance(kept, BodyReference):
            shared = await self._shared(key, kept.number)
            if shared is None:
                return None
            return SpooledMessage(key, kept.message(shared.data), len(shared.data), shared)
        return SpooledMessage(key, kept.message(), len(kept.body))

    async def _shared(self, key: bytes, number: int) -> SharedBody | None:
        """Return the body that a reference is for; none if that is settled."""
        body = self._held.get(key)
        if body is None:
            return None
        if (shared := body.in_memory()) is not None:
            return shared
        records = await self._store.scan(_BODY, key_of(number), limit=1)
        if key not in self._held:
            return None
        if not records:
            raise damaged("spool")
        return body.share(records[0][1])

    def _keep_body(self, message: Message, changes: list[Change]) -> SpooledBody:
        body = SpooledBody(len(message.body), message.day, self._next, REFERENCE)
        changes.append(Change(_BODY, key_of(self._next), message.body, is_new=True))
        return body

    def _set_apart(self, item: SpooledMessage, body: SpooledBody, changes: list[Change]) -> None:
        """Have the body of a message that is one record lie apart, so that others can wait with it."""
        body.number, body.each = self._next, REFERENCE
        self._size += REFERENCE
        changes.append(Change(_BODY, key_of(body.number), item.message.body, is_new=True))
        changes.append(Change(_KIND, item.key, reference(body.number, item.message)))

    def _place(self, hop: Hop, body: SpooledBody) -> bytes:
        key = key_of(self._next, hop)
        self._next += 1
        self._hold(hop, key, body)
        return key

    def _hold(self, hop: Hop, key: bytes, body: SpooledBody) -> None:
        self._held[key] = body
        self._size += body.each if body.waiting else body.each + body.size
        body.waiting += 1
        self.shares[hop] = self.shares.get(hop, 0) + body.size

    def _release(self, places: Iterable[bytes]) -> list[Change]:
        """Let go of places; return what this changes in the store."""
        changes: list[Change] = []
        freed: dict[bytes, int] = {}
        for key in places:
            if (body := self._held.pop(key, None)) is None:
                changes.append(Change(_KIND, key, None))
                continue
            name = key[:HOP_SIZE]
            freed[name] = freed.get(name, 0) + body.size
            body.waiting -= 1
            self._size -= body.each if body.waiting else body.each + body.size
            changes.append(Change(_KIND, key, None, body.size if body.number is None else 0))
            if body.number is not None and not body.waiting:
                changes.append(Change(_BODY, key_of(body.number), None, body.size))
        for name, size in freed.items():
            hop = Hop(name)
            if (left := self.shares.get(hop, 0) - size) > 0:
                self.shares[hop] = left
            else:
                self.shares.pop(hop, None)
        return changes
