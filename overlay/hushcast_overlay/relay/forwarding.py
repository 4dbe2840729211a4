"""Forwarding: takes messages from previous hops, lets the pure router decide, and sends them on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import NamedTuple

import trio

from hushcast_overlay.relay.next_hops import NextHops
from hushcast_overlay.relay.placement import SpoolPlacement
from hushcast_overlay.relay.rate_limiter import RateLimiter
from hushcast_protocol.base import observations
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import Message, check_message
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.forwarding import ForwardingDecision, ForwardingOutcome, Router
from hushcast_protocol.overlay.hops import is_box
from hushcast_protocol.overlay.trail import LABEL_SIZE
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.spool import Spool, SpooledMessage
from hushcast_runtime.time_slices import in_steps
from hushcast_runtime.transports.base import TransportError

# Seconds before a link ends that brings more than fits, and before what was accepted is tried again.
FULL_PAUSE = 5.0

COPIES_AT_ONCE = 1024  # of messages, for one next hop each, that one step places: 5 ms of a processor

_LABEL = RecordKind(
    "label",
    StateOwner.RELAY,
    holds="its newest trail label",
    lifetime="one epoch, and the one after",
)

TakeListed = Callable[[list[Message]], Awaitable[None]]
"""Where the subscriber is a listed root: takes all messages that pass its relay, repeats as well."""


class Routed(NamedTuple):
    """What became of messages."""

    unrouted: list[Message]
    """Those that have no route here."""
    is_held: bool
    """Whether there is no room for some of their next hops."""
    copies: int
    """Messages, for one next hop each, that were sent."""


class Forwarding:
    """The messages that pass one relay."""

    def __init__(
        self,
        router: Router,
        spool: Spool,
        placing: SpoolPlacement,
        next_hops: NextHops,
        calendar: Calendar,
        take_listed: TakeListed,
        context: Context,
    ) -> None:
        self._router = router
        self._spool = spool
        self._placing = placing
        self._next_hops = next_hops
        self._calendar = calendar
        self._take_listed = take_listed
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._tracer = context.tracer
        self._rate_limiter = RateLimiter(context.env)
        self._interrupted: list[Hop] = []

    async def load(self) -> None:
        """Read back the messages that were on their way when a restart interrupted them."""
        await self._load_label()
        self._interrupted = await self._spool.load()

    def resume(self) -> None:
        """Send what was read back."""
        for hop in self._interrupted:
            self._next_hops.resume(hop)
        self._interrupted = []

    def begin_epoch(self) -> None:
        """Take a fresh trail label, by which the relay knows what has passed it."""
        label = self._env.randomness(LABEL_SIZE)
        self._router.use_label(label)
        self._store.write_soon(Change(_LABEL, b"", label))

    async def lapse(self) -> None:
        """Forget what waits from days gone by; whoever calls is certain that they are."""
        first = self._open_days().start

        def keeps(hop: Hop, day: int) -> bool:
            # An owner has the day after to fetch what waits, or as long as keepers keep it.
            return day >= first - is_box(hop) or self._next_hops.keeps(hop, day)

        self._counters.add("messages_expired", await in_steps(self._spool.expire(keeps)))

    async def take(
        self, messages: list[Message], previous: bytes, only: Callable[[Hop], bool] | None = None
    ) -> list[int]:
        """Take over messages from a previous hop; return the places of those that nothing here routes.

        They may be acknowledged once the spool is durable. Where `only` is given, they go to no other next
        hops.
        Raises a `PeerError` at the first that is malformed, `TransportError` while the spool is full, or
        where this relay's clock may be wrong: the previous hop keeps them and tries again.
        """
        if self._spool.is_full(sum([len(message.body) for message in messages])):
            self._counters.add("refused_quota")
            await trio.sleep(FULL_PAUSE)
            raise TransportError("the spool is full")
        good = []
        came = 0
        try:
            open_days = self._open_days()
            for message in messages:
                came += 1
                check_message(message)
                if message.day in open_days:
                    good.append(message)
                elif self._env.is_certain():
                    self._counters.add("refused_day")
                else:
                    raise TransportError("a message of another day, and the clock is not certain")
        finally:
            self._counters.add("messages_received", came)
            routed = await self.route(good, previous, only=only)
        if routed.is_held:
            self._counters.add("refused_quota")
            await trio.sleep(FULL_PAUSE)
            raise TransportError("the spool has no room for a next hop")
        if not routed.unrouted:
            return []
        strange = {message.id for message in routed.unrouted}
        return [place for place, message in enumerate(messages) if message.id in strange]

    async def _load_label(self) -> None:
        """Take up the label of before a restart: by it the relay knows what passed it then."""
        await restore(self._store, _LABEL, lambda _, label: self._router.use_label(sized(label, LABEL_SIZE)))
        fresh = self._env.randomness(LABEL_SIZE)
        self._router.use_label(fresh)
        await self._store.write(Change(_LABEL, b"", fresh))

    async def route(
        self,
        messages: list[Message],
        previous: bytes,
        settle: Callable[[], list[Change]] | None = None,
        is_again: bool = False,
        only: Callable[[Hop], bool] | None = None,
    ) -> Routed:
        """Decide on checked messages, send and spool what has a route.

        A drop is one message from `ORIGIN`, whose bytes are reserved: `settle` gives them back and
        returns what belongs in the commit; it `is_again` where it has been traced before.

        A drop is durable when this returns. What has no room must be brought again. The next hop need not
        wait for this relay's disk: should the relay die before it has written, it has acknowledged nothing,
        gets the messages again, and the next hop knows their ids. Nor is a repeat durable before: it may come
        while the message is still being written.
        """
        unrouted: list[Message] = []
        passing: list[Message] = []
        sends: list[HopMessage] = []
        sent: Counter[Hop] = Counter()
        is_held = is_repeat = False
        size, now, is_traced = 0, self._env.elapsed(), self._tracer.is_on
        for message in messages:
            try:
                decision = self._router.route(message, previous, now, only)
            except DecodeError:
                self._counters.add("refused_form")
                continue
            if is_traced or decision.boxes or not decision.sends:
                self._note(message, previous, decision, is_again)
            if decision.sends:  # as most often
                sends += decision.sends
                size += len(message.body)
            elif decision.outcome is ForwardingOutcome.UNROUTED:
                unrouted.append(message)
            elif decision.outcome is ForwardingOutcome.LOOP:
                continue
            else:
                is_repeat = True
            passing.append(message)
            if len(sends) >= COPIES_AT_ONCE:
                is_held |= self._place(sends, size, settle is not None, sent)
                sends, size = [], 0
                await self._next_hops.make_room()
                await trio.lowlevel.checkpoint()
        is_held |= self._place(sends, size, settle is not None, sent)
        await self._take_listed(passing)
        settled = [] if settle is None or is_held else settle()
        if previous == ORIGIN and (sent or is_repeat or settle is not None):
            await self._store.write(*settled)
        await self._next_hops.make_room()
        if previous != ORIGIN and (debt := self._rate_limiter.debt(previous, sent)):
            self._counters.add("links_slowed")
            await trio.sleep(debt)
        return Routed(unrouted, is_held, sent.total())

    async def hand_on(self, drop: Message) -> None:
        """Send a drop whose leases may lack here to another relay, which may have them."""
        changes: list[Change] = []
        if sends := self._placing.elsewhere(drop, self._next_hops.away):
            self._send(self._spool.take(sends, changes), changes)
            await self._next_hops.make_room()

    async def route_late(self, message: Message, late: Sequence[Hop]) -> Routed:
        """Route a drop again to next hops whose leases came after it; no bytes are reserved.

        A relay gets it even where it had it for other leases: behind it this one leads elsewhere. It sends on
        only to whom it has not sent it. A box is the end of its way, and gets it once.
        """
        self._router.unsent(message, [hop for hop in late if not is_box(hop)])
        return await self.route([message], ORIGIN, is_again=True, only=late.__contains__)

    def _place(self, sends: list[HopMessage], size: int, is_reserved: bool, sent: Counter[Hop]) -> bool:
        """Send what was decided on, bodies of `size` bytes that may be reserved; count in `sent` to whom.

        Return whether there was no room for some of it.
        """
        changes: list[Change] = []
        placed: dict[Hop, list[SpooledMessage]] = {}
        is_held = False
        if self._spool.is_roomy(size, sends):  # as a rule
            placed = self._spool.take(sends, changes)
        else:
            for _, one in groupby(sends, lambda send: id(send.message)):
                copies = tuple(one)
                spare = len(copies[0].message.body) if is_reserved else 0
                ways, more = self._placing.place(copies, self._next_hops.away, spare)
                is_held |= more
                for hop, items in self._spool.take(ways, changes).items():
                    placed.setdefault(hop, []).extend(items)
        self._send(placed, changes)
        for hop, items in placed.items():
            sent[hop] += len(items)
        return is_held

    def _send(self, placed: dict[Hop, list[SpooledMessage]], changes: list[Change]) -> None:
        """Send what was placed. Nothing is waited for before: the router has noted it."""
        if changes:
            self._store.write_soon(*changes)
            self._next_hops.enqueue(placed)

    def _note(self, message: Message, previous: bytes, decision: ForwardingDecision, is_again: bool) -> None:
        """Count and tell what was decided, but on a message that is tried again, not received again."""
        if is_again or decision.is_again:
            return
        if decision.boxes and previous != ORIGIN:
            self._next_hops.came(decision.boxes, message.id, previous)
        if self._tracer.is_on:
            self._tracer.observe(
                observations.Received(
                    message.id,
                    message.tokens,
                    None if previous == ORIGIN else previous,
                    decision.outcome.value,
                    decision.popcount,
                    len(message.body),
                )
            )
        if decision.outcome is not ForwardingOutcome.FORWARDED:
            self._counters.add(_COUNTED[decision.outcome])

    def entry(self, message: Message) -> tuple[bytes, ...]:
        """Return the elements by which a drop enters the overlay here."""
        return self._router.entry(message)

    def is_open(self, day: int) -> bool:
        """Tell whether messages of a day are forwarded now."""
        return day in self._open_days()

    def _open_days(self) -> range:
        return self._calendar.open_days(self._env.now())


_COUNTED = {
    ForwardingOutcome.DUPLICATE: "messages_duplicate",
    ForwardingOutcome.LOOP: "messages_looped",
    ForwardingOutcome.UNROUTED: "messages_unrouted",
}
