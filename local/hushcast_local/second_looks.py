"""Second looks: after a receipt, a publisher looks whether its message is kept, and drops it anew if not.

Both origins of a publication may lose it, and no reader can tell. So some minutes after its receipt it is
looked for; where it is not shown it is dropped anew at other origins, three times at most, and where nobody
ever showed it, its publisher is told. What waits for its look is on disk, and looked for after a restart.
"""

from __future__ import annotations

import msgspec
import trio

from hushcast_local.outbox import Outbox, OutboxPublication
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.carriers.carrier import Carrier, Looking
from hushcast_runtime.carriers.takers import Takers
from hushcast_runtime.context import Context
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import record_reader

MAX_LOOKED_FOR = 1_000  # publications that wait for their look; more are not looked for, and counted
MAX_LOOKED_SIZE = 32 * 1024 * 1024  # bytes of their bodies, on disk and in memory: as the outbox has
MAX_LOOKS_AT_ONCE = 8  # looks under way: each is three to five circuits, with a drop two more
_SCAN = 15  # records read at once; the largest have 256 KiB

_KIND = RecordKind(
    "looked-for",
    StateOwner.DAEMON,
    holds="publications with a receipt that are looked for once more, sealed, with the names of their topics",
    lifetime="until keepers show them, or their day has lapsed; an hour or two",
    bound=f"{MAX_LOOKED_FOR:,}, of {MAX_LOOKED_SIZE // 2**20} MiB",
)


class _LookedFor(msgspec.Struct, array_like=True):
    """A publication as it lies in the store."""

    message: Message
    topic: str
    since: float
    """Unix time of its first drop."""
    origins: list[bytes]
    due: float
    dropped_anew: int = 0
    was_shown: bool = False
    """Whether any keeper ever showed it."""
    was_missed: bool = False
    """Whether too few of the last that were asked showed it."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "_LookedFor(...)"


_decode = record_reader(_LookedFor, "publication that is looked for")


class SecondLooks:
    """The publications of one daemon that are looked for."""

    def __init__(self, carrier: Carrier, outbox: Outbox, context: Context) -> None:
        self._carrier = carrier
        self._looking = carrier.looking
        self._calendar = carrier.calendar
        self._outbox = outbox
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._spawn = context.spawn
        self._waiting: dict[bytes, _LookedFor] = {}
        self._size = 0
        self._turns = FewAtOnce(MAX_LOOKS_AT_ONCE)

    async def load(self) -> None:
        """Take up what a restart interrupted."""
        await restore(self._store, _KIND, self._take_up, at_once=_SCAN)
        if self._looking is not None:
            for key, one in self._waiting.items():
                self._spawn(self._follow, self._looking, key, one)

    def _take_up(self, key: bytes, value: bytes) -> None:
        one = _decode(value)
        check_message(one.message)
        sized(key, len(one.message.id))
        if one.dropped_anew < 0:
            raise DecodeError("a publication was dropped anew a negative number of times")
        self._hold(key, one)

    def begin(self, publication: OutboxPublication) -> None:
        """Look for what has left the outbox, if it can be; durable with the next commit."""
        message, looking = publication.message, self._looking
        if looking is None or not looking.can_look(message, publication.width):
            return
        is_full = len(self._waiting) >= MAX_LOOKED_FOR
        if is_full or self._size + len(message.body) > MAX_LOOKED_SIZE:
            self._counters.add("publications_not_looked_for")
            return
        now = self._env.now()
        one = _LookedFor(message, publication.topic, now, list(publication.origins), now + self._pause())
        self._hold(publication.id, one)
        self._keep(publication.id, one)
        self._spawn(self._follow, looking, publication.id, one)

    def _hold(self, key: bytes, one: _LookedFor) -> None:
        self._waiting[key] = one
        self._size += len(one.message.body)

    def _pause(self) -> float:
        manner = self._carrier.manner
        return self._env.uniform(manner.earliest_look, manner.latest_look)

    def _keep(self, key: bytes, one: _LookedFor) -> None:
        self._store.write_soon(Change(_KIND, key, encode(one)))

    async def _follow(self, looking: Looking, key: bytes, one: _LookedFor) -> None:
        looking.prepare(one.message)
        is_there = False
        while not is_there:
            await trio.sleep(max(0.0, one.due - self._env.now()))
            is_over = self._env.is_certain() and self._env.now() >= self._calendar.lapse(one.message.day)
            async with self._turns:
                is_there = await self._look(looking, one)
                is_enough = one.dropped_anew >= self._carrier.manner.dropped_anew
                is_last = is_over or (one.was_missed and is_enough)
                if is_there or is_last:
                    break
                if one.was_missed:
                    await self._drop_anew(looking, one)
            one.due = self._env.now() + self._pause()
            self._keep(key, one)
        del self._waiting[key]
        self._size -= len(one.message.body)
        if one.was_missed and not one.was_shown:
            self._tell_lost(key, one)
        self._store.write_soon(Change(_KIND, key, None))

    async def _look(self, looking: Looking, one: _LookedFor) -> bool:
        """Return whether it is there; where nobody answers that is not known, and asked again."""
        looked = await looking.look(one.message, one.since)
        if looked.shown or looked.missed:
            one.was_shown |= looked.shown > 0
            one.was_missed = not looked.is_there
        return looked.is_there

    async def _drop_anew(self, looking: Looking, one: _LookedFor) -> None:
        one.dropped_anew += 1
        one.was_missed = False
        self._counters.add("publications_dropped_anew")
        try:
            takers, avoided = Takers(one.origins), tuple(one.origins)
            await looking.drop_anew(one.message, takers, avoided, one.was_shown)
        except Refusal as refusal:
            log.info("a publication was not dropped anew", reason=refusal.reason)

    def _tell_lost(self, key: bytes, one: _LookedFor) -> None:
        """Have the outbox list it as given up."""
        log.warning("no keeper ever showed a message that relays took")
        self._counters.add("publications_given_up")
        lost = OutboxPublication(key, one.message, one.topic, one.since, one.origins)
        lost.reason = "relays took it and nobody shows it: it is lost, so publish it again"
        self._outbox.give_up(lost)
