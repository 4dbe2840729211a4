"""The messages that this relay keeps, as a keeper, for whoever asks: on disk until their days are over."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated

import msgspec
import trio

from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.relay.rate_limiter import RateLimiter
from hushcast_overlay.relay.times_there import TimesThere
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Bytes32, Counter, RelayId, encode
from hushcast_protocol.content.kept_shares import (
    MAX_KEPT,
    MAX_OTHERS,
    TRUNK_DAY_SIZE,
    KeptEntry,
    KeptShares,
    day_of_trunk,
    trunk_day,
)
from hushcast_protocol.content.messages import MAX_BODY, TRAIL_SIZE, Message, check_message
from hushcast_protocol.overlay.hops import keeper_hop
from hushcast_protocol.overlay.keeper_frames import (
    AskKept,
    AskKeptMessages,
    KeeperAnswer,
    KeeperRequest,
    ShownKept,
    ShownKeptMessages,
    check_handed_in,
    first_shown,
)
from hushcast_protocol.overlay.kept_answers import windows
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.kept_store import forget_days
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import record_reader
from hushcast_runtime.transports.base import TransportError

MAX_GAVE_WAY = 16_384  # trunks' days with a count of what gave way; 2 MB. All others of a day share one
TAKEN_AT_ONCE = 32  # messages that one step takes: 10 ms of a processor, the largest ones

_ENTRY = RecordKind(
    "kept",
    StateOwner.RELAY,
    holds="what it keeps as a keeper: of each message its size, its epoch and which relays handed it in",
    lifetime=f"until its day is over for as long as the network's rule says, {MAX_DAYS_KEPT} days at most",
)
_BODY = RecordKind(
    "kept-body",
    StateOwner.RELAY,
    holds="the sealed bodies of what it keeps as a keeper",
    lifetime="as long as what is known of them",
    bound=f"{MAX_KEPT // 2**20} MiB",
)
_GAVE_WAY = RecordKind(
    "kept-gave-way",
    StateOwner.RELAY,
    holds="how many messages of a trunk and day gave way",
    lifetime="as long as messages of that day are kept",
    bound=f"{MAX_GAVE_WAY:,}, and one for each day",
)
_OTHERS = bytes(16)  # stands for all trunks of a day that have no count of their own


class _StoredEntry(msgspec.Struct, frozen=True, array_like=True):
    size: Counter
    giver: Bytes32
    epoch: Counter
    others: Annotated[tuple[Bytes32, ...], msgspec.Meta(max_length=MAX_OTHERS)] = ()


_decode_entry = record_reader(_StoredEntry, "kept")
_decode_count = record_reader(Counter, "kept-gave-way")


class KeptMessages:
    """What one relay keeps."""

    def __init__(
        self, relay: RelayId, lists: CandidateLists, calendar: Calendar, there: TimesThere, context: Context
    ) -> None:
        self._relay = relay
        self._lists = lists
        self._calendar = calendar
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._rate_limiter = RateLimiter(context.env)
        self._there = there
        self._shares = KeptShares()
        self._gave_way: dict[bytes, int] = {}  # by trunk and day

    async def load(self) -> None:
        """Take up what was kept before a restart."""
        await restore(self._store, _GAVE_WAY, self._take_count)
        await restore(self._store, _ENTRY, self._take_entry)

    def _take_count(self, key: bytes, value: bytes) -> None:
        self._gave_way[sized(key, TRUNK_DAY_SIZE)] = _decode_count(value)

    def _take_entry(self, key: bytes, value: bytes) -> None:
        stored = _decode_entry(value)
        if stored.size > MAX_BODY:
            raise DecodeError("what is kept is larger than any message")
        name, message = _parts(sized(key, TRUNK_DAY_SIZE + 32))
        self._keep(name, message, KeptEntry(stored.size, stored.giver, stored.epoch, stored.others))

    async def take(self, messages: list[Message], giver: RelayId) -> list[int]:
        """Keep what a relay hands in, durably on return; return the places of what is not kept here.

        Raises a `PeerError` at the first that no honest relay hands in, and `TransportError` where this
        relay's clock may be wrong: the origin tries again. Who hands in too fast waits.
        """
        declined = []
        for place, message in enumerate(messages):
            check_handed_in(message)
            if not self._take(message, giver):
                declined.append(place)
            if place % TAKEN_AT_ONCE == TAKEN_AT_ONCE - 1:
                await trio.lowlevel.checkpoint()
        await self._store.write()
        self._counters.add("hand_ins_declined", len(declined))
        if debt := self._rate_limiter.debt(giver, {keeper_hop(self._relay): len(messages)}):
            self._counters.add("links_slowed")
            await trio.sleep(debt)
        return declined

    def keep_own(self, message: Message) -> None:
        """Keep what was dropped at this relay itself; durable with the next commit."""
        self._take(message, self._relay)

    def _take(self, message: Message, giver: RelayId) -> bool:
        """Keep a message that was checked; tell whether this is for this relay to keep."""
        day, trunk = message.day, message.tokens[0]
        if day not in self._calendar.open_days(self._env.now()):
            if not self._env.is_certain():
                raise TransportError("a message of another day, and the clock is not certain")
            return False
        if self._relay not in self._lists.keepers(day, trunk):
            return False
        name, entry = trunk_day(day, trunk), KeptEntry(len(message.body), giver, self._epoch())
        if self._shares.find(name, message.id) is not None:
            self._counters.add("hand_ins_again")
            if (moved := self._shares.hand_in_again(name, message.id, giver)) is not None:
                self._store.write_soon(_record(name, message.id, moved))
            return True
        self._counters.add("messages_kept")
        self._store.write_soon(
            _record(name, message.id, entry), Change(_BODY, name + message.id, message.body)
        )
        self._keep(name, message.id, entry)
        return True

    def _epoch(self) -> int:
        return self._calendar.epoch(self._env.now())

    def _keep(self, name: bytes, message: bytes, entry: KeptEntry) -> None:
        for trunk, gone, what in self._shares.add(name, message, entry):
            self._counters.add("messages_kept_gave_way")
            self._store.write_soon(self._count(trunk), *_gone(trunk, gone, what.size))

    def _count(self, name: bytes) -> Change:
        if name not in self._gave_way and len(self._gave_way) >= MAX_GAVE_WAY:
            name = trunk_day(day_of_trunk(name), _OTHERS)
        self._gave_way[name] = self._gave_way.get(name, 0) + 1
        return Change(_GAVE_WAY, name, encode(self._gave_way[name]))

    async def answer(self, request: KeeperRequest) -> KeeperAnswer:
        """Show what is asked for, the same to all."""
        self._counters.add("kept_asked_for")
        name = trunk_day(request.day, request.trunk)
        if isinstance(request, AskKept):
            counts = (self._gave_way.get(one, 0) for one in (name, trunk_day(request.day, _OTHERS)))
            asked = windows(request.day) if request.epoch is None else (request.epoch,)
            return ShownKept(self._shares.ids(name, request.epoch), sum(counts), self._there.away(asked))
        return ShownKeptMessages(await self._read(name, request))

    async def _read(self, name: bytes, request: AskKeptMessages) -> tuple[Message, ...]:
        kept = [(one, entry) for one in request.ids if (entry := self._shares.find(name, one)) is not None]
        await self._store.write()  # it may have come a moment ago
        shown: list[Message] = []
        for one, _ in kept[: first_shown(entry.size for _, entry in kept)]:
            for _, body in await self._store.scan(_BODY, name + one, limit=1):
                found = Message(one, request.day, (request.trunk,), bytes(TRAIL_SIZE), body)
                with suppress(PeerError):  # a damaged disk
                    check_message(found)
                    shown.append(found)
        return tuple(shown)

    async def lapse(self) -> None:
        """Forget the days that are over for long enough; whoever calls is certain of the time."""
        first = max(0, self._calendar.open_days(self._env.now()).start - self._lists.keeping.days)
        await forget_days(first, self._shares, _gone, self._store, _BODY)
        for name in [name for name in self._gave_way if day_of_trunk(name) < first]:
            del self._gave_way[name]
            self._store.write_soon(Change(_GAVE_WAY, name, None))


def _parts(key: bytes) -> tuple[bytes, bytes]:
    return key[:TRUNK_DAY_SIZE], key[TRUNK_DAY_SIZE:]


def _record(name: bytes, message: bytes, entry: KeptEntry) -> Change:
    return Change(_ENTRY, name + message, encode(_StoredEntry(*entry)))


def _gone(name: bytes, message: bytes, size: int) -> Iterable[Change]:
    return Change(_ENTRY, name + message, None), Change(_BODY, name + message, None, size)
