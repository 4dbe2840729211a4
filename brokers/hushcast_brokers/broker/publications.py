"""Publications: taken by the root from whoever shows no name, and on disk before anybody hears of it.

The receipt says nothing of who is interested: that is looked up behind it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import cast

import trio

from hushcast_brokers.broker.downstream import Downstream
from hushcast_brokers.broker.forwarding import MANY, BrokerForwarding
from hushcast_brokers.broker.kept_publications import RootKeeping
from hushcast_brokers.broker.matching import Matching
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.brokers.frames import AskPast, BrokerVerdict, Publish, Receipt, past_asked
from hushcast_protocol.content.hops import HOP_SIZE, Hop, HopMessage
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.admission import Admission
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.daily_ids import forget_days
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.spool import Spool, SpooledMessage, SpoolMove

MAX_KNOWN = 262_144  # ids of publications, some 40 MB: three a second for a day; the oldest are forgotten

WORDS = RecordKind(
    "published-words",
    StateOwner.BROKER,
    holds="at the root, under layers: the words that publications came with",
    lifetime="as long as their ids",
)
"""Under which words publications came, by id, where what waits for a broker that left is handed up."""

_KIND = RecordKind(
    "publication",
    StateOwner.BROKER,
    holds="at the root: ids of publications",
    lifetime="until their day has lapsed",
    bound=f"the last {MAX_KNOWN:,}",
)
_ID = 32  # bytes of a message's id
_NEW = Hop(b"\x04".ljust(HOP_SIZE, b"\0"))  # what waits to be looked up


class RootPublications:
    """What the root takes."""

    def __init__(
        self,
        matching: Matching,
        forwarding: BrokerForwarding,
        downstream: Downstream,
        spool: Spool,
        admission: Admission,
        kept: RootKeeping,
        context: Context,
    ) -> None:
        self._matching = matching
        self._forwarding = forwarding
        self._downstream = downstream
        self._spool = spool
        self._admission = admission
        self._kept = kept
        self._calendar = kept.calendar
        self._store = context.store
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._known: OrderedDict[bytes, int] = OrderedDict()  # days, by id
        self._new: deque[SpooledMessage] = deque()
        self._came = trio.Event()

    async def load(self) -> None:
        """Know what was taken before a restart."""
        await restore(
            self._store, _KIND, lambda key, value: self._known.update({sized(key, _ID): number(value)})
        )
        await self._kept.load()

    async def take(self, frame: Publish) -> Receipt:
        """Take a publication: it is on disk once this returns, whether anybody asked for it or not."""
        verdict: BrokerVerdict = "accepted"
        try:
            self._put(frame)
            await self._spool.durable()
        except Refusal as refusal:
            self._counters.add(f"refused_{refusal.reason}")
            verdict = cast(BrokerVerdict, refusal.reason)
        return Receipt(verdict, self._admission.difficulty)

    async def past(self, asked: AskPast) -> tuple[list[Message], Receipt]:
        """Return some of what is kept, and the answer that says that it is all for now, or why it is none."""
        verdict: BrokerVerdict = "accepted"
        messages: list[Message] = []
        try:
            if (refused := self._admission.refusal(asked.stamp, past_asked(asked))) is not None:
                raise Refusal(refused)
            messages = await self._kept.page(asked)
        except Refusal as refusal:
            self._counters.add(f"refused_{refusal.reason}")
            verdict = cast(BrokerVerdict, refusal.reason)
        return messages, Receipt(verdict, self._admission.difficulty)

    async def run(self) -> None:
        """Look up what was taken, until cancelled."""
        while items := await self._spool.waiting(_NEW):
            await self._look_up(items)
        while True:
            await self._came.wait()
            self._came = trio.Event()
            items = list(self._new)
            self._new.clear()
            await self._spool.durable()
            await self._look_up(items)

    async def expire(self, now: float) -> None:
        """Forget the publications of days that have lapsed, some at a time."""

        def forget(key: bytes) -> None:
            self._store.write_soon(*self._forgotten(key))

        await forget_days(self._known, lambda day: self._calendar.lapse(day) <= now, forget)
        await self._kept.expire(now)

    def _forgotten(self, key: bytes) -> list[Change]:
        gone = [Change(_KIND, key, None)]
        return [*gone, Change(WORDS, key, None)] if self._matching.hands_up else gone

    def _put(self, frame: Publish) -> None:
        message = frame.message
        if (refused := self._admission.refusal(frame.stamp, message.id)) is not None:
            raise Refusal(refused)
        try:
            check_message(message)
            entered = self._matching.entering(message)
        except PeerError:
            raise Refusal("form") from None
        if message.day not in self._calendar.open_days(self._env.now()):
            raise Refusal("day")
        if message.id in self._known:
            self._counters.add("publications_repeated")
            return
        size = len(message.body)
        if self._spool.is_full(size) or not self._spool.has_share(_NEW, size):
            raise Refusal("quota")
        self._known[message.id] = message.day
        changes = [Change(_KIND, message.id, message.day.to_bytes(8, "big")), *self._kept.keep(message)]
        if self._matching.hands_up:
            changes.append(Change(WORDS, message.id, b"".join(entered.tokens)))
        if len(self._known) > MAX_KNOWN:
            changes += self._forgotten(self._known.popitem(last=False)[0])
        ((_, item),) = self._spool.put([HopMessage(_NEW, entered)], *changes)
        self._new.append(item)
        self._came.set()
        self._counters.add("publications_accepted")
        self._tracer.observe(observations.Drop(message.id, message.tokens, size))

    async def _look_up(self, items: list[SpooledMessage]) -> None:
        moves: list[SpoolMove] = []
        for item in items:
            sends = self._forwarding.sends(item.message)
            moves += [SpoolMove(item, send.hop, send.message) for send in sends]
            if not sends:
                self._spool.done([item])
            elif len(sends) >= MANY:
                await trio.lowlevel.checkpoint()
        self._downstream.enqueue(await self._spool.move(moves))
