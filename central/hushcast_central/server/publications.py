"""Publications: taken from proxies, matched, and on disk for their subscribers before anybody hears of it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence

import trio

from hushcast_central.server.deliveries import Deliveries
from hushcast_central.server.kept_publications import KeptPublications
from hushcast_central.server.outer_layer import OuterLayer
from hushcast_protocol.base import observations
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import AuthenticationError, PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.central.frames import Publish, UserAnswer
from hushcast_protocol.central.introduction import OpenedIntroduction
from hushcast_protocol.central.pseudonym_register import MAX_PSEUDONYMS, PseudonymRegister
from hushcast_protocol.central.publishing_pseudonyms import PublishingPseudonyms
from hushcast_protocol.central.request_proofs import check_request, done
from hushcast_protocol.central.rerouting import mark
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.daily_ids import forget_days
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.spool import REFERENCE, Spool

MAX_KNOWN = 262_144  # ids of publications, some 40 MB: three a second for a day; the oldest are forgotten
PLACED_AT_ONCE = 512  # pseudonyms for which one step places a publication, some 8 ms; each 512 have one body
TOLD_EVERY = 3600.0  # seconds between two lines of the log that deliveries are lost

_KIND = RecordKind(
    "publication",
    StateOwner.SERVER,
    holds="ids of publications",
    lifetime="until their day has lapsed",
    bound=f"the last {MAX_KNOWN:,}",
)
_ID = 32  # bytes of a message's id


class ServerPublications:
    """What one server takes from publishers. Methods raise `Refusal` with a verdict."""

    def __init__(
        self,
        sealing: OuterLayer,
        register: PseudonymRegister,
        spool: Spool,
        deliveries: Deliveries,
        kept: KeptPublications,
        calendar: Calendar,
        context: Context,
    ) -> None:
        self._sealing = sealing
        self._register = register
        self._spool = spool
        self._deliveries = deliveries
        self._kept = kept
        self._calendar = calendar
        self._context = context
        self._counters = context.counters
        self.publishers = PublishingPseudonyms(calendar)
        self._known: OrderedDict[bytes, int] = OrderedDict()  # days, by id
        self._placing = trio.Lock()  # what is known has all of its places, for whoever hands it in again
        self._told = -math.inf

    async def load(self) -> None:
        """Know what was taken before a restart."""
        await restore(
            self._context.store,
            _KIND,
            lambda key, value: self._known.update({sized(key, _ID): number(value)}),
        )

    def introduce(self, proxy: PublicKey, introduced: OpenedIntroduction) -> None:
        """Know a pseudonym that publishes, for a while."""
        self.publishers.introduce(proxy, introduced, self._context.env.now())

    async def take(self, proxy: PublicKey, request: Publish) -> UserAnswer:
        """Take a publication: it is on disk once this returns, whether anybody asked for it or not."""
        now = self._context.env.now()
        publisher = self.publishers.find(proxy, request.pseudonym, now)
        try:
            check_request(publisher.secret, request)
        except AuthenticationError:
            raise Refusal("proof") from None
        try:
            message = self._sealing.opened(request.wrapped, publisher.day)
        except PeerError:
            raise Refusal("form") from None
        if message.day not in self._calendar.open_days(now):
            raise Refusal("day")
        async with self._placing:
            if message.id in self._known:
                self._counters.add("publications_repeated")
            else:
                await self._put(proxy, request, message)
        await self._context.store.write()
        return done(publisher.secret, request, "accepted")

    async def expire(self, now: float) -> None:
        """Forget the publications of days that have lapsed, some at a time."""

        def forget(key: bytes) -> None:
            self._context.store.write_soon(Change(_KIND, key, None))

        await forget_days(self._known, lambda day: self._calendar.lapse(day) <= now, forget)

    async def _put(self, proxy: PublicKey, request: Publish, message: Message) -> None:
        size = len(message.body)
        # Before it is matched, with room for all there are: the verdict tells of nobody who is interested.
        bodies = -(-MAX_PSEUDONYMS // PLACED_AT_ONCE)
        if self._spool.is_full(bodies * size + MAX_PSEUDONYMS * REFERENCE):
            raise Refusal("quota")
        left = self._register.match(request.tokens)
        is_wanted = False
        while True:
            some, left = left[:PLACED_AT_ONCE], left[PLACED_AT_ONCE:]
            wanting = self._register.wanting(some, request.tokens)
            is_wanted = is_wanted or bool(wanting)
            # With the last: who is killed before that takes it again, from the beginning.
            changes = [] if left else [*self._knowing(message), *self._kept.keep(proxy, message)]
            self._deliveries.enqueue(self._spool.put(self._sends(wanting, message), *changes))
            if not left:
                break
            await trio.lowlevel.checkpoint()
        if not is_wanted:
            self._counters.add("publications_unmatched")
        self._counters.add("publications_accepted")
        self._observe(request)

    def _knowing(self, message: Message) -> list[Change]:
        """Know a publication from now on; return what this changes in the store."""
        changes = [Change(_KIND, message.id, message.day.to_bytes(8, "big"))]
        self._known[message.id] = message.day
        if len(self._known) > MAX_KNOWN:
            changes.append(Change(_KIND, self._known.popitem(last=False)[0], None))
        return changes

    def _sends(self, wanting: Sequence[Hop], message: Message) -> list[HopMessage]:
        size = len(message.body)
        hops = [hop for hop in wanting if self._spool.has_share(hop, size)]
        if len(hops) < len(wanting):
            self._lose(len(wanting) - len(hops))
        return [HopMessage(hop, message) for hop in hops]

    def _lose(self, count: int) -> None:
        self._counters.add("deliveries_over_share", count)
        now = self._context.env.elapsed()
        if now - self._told >= TOLD_EVERY:
            self._told = now
            log.warning("a pseudonym takes too little: more waits for it than may, and is lost to it")

    def _observe(self, request: Publish) -> None:
        if not self._context.tracer.is_on:
            return
        name, readable = self._sealing.seen_inside(request.wrapped)
        size = len(request.wrapped.payload)
        self._context.tracer.observe(
            observations.Handed(
                name, request.pseudonym, request.tokens, mark(request.wrapped), size, readable
            )
        )
