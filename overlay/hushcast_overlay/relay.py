"""The relay: takes drops, parcels and messages from others, lets the pure core decide, sends on."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from hushcast_overlay.accepted import Accepted
from hushcast_overlay.admission_control import AdmissionControl, Declined
from hushcast_overlay.connection_guard import strangers_room
from hushcast_overlay.connector import Connector, OverlayChannel
from hushcast_overlay.detours import Detours
from hushcast_overlay.identity import Identity
from hushcast_overlay.kept_links import KeptLinks
from hushcast_overlay.leasing import Leasing
from hushcast_overlay.peers import Peers
from hushcast_overlay.placing import Placing
from hushcast_overlay.rate_limiter import RateLimiter
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.spool import Spool, Spooled
from hushcast_protocol.base import observed
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.base.wire import RelayId, Wire
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.forwarding import Decision, Outcome, RecentIds, Router
from hushcast_protocol.overlay.frames import Drop, OverlayFrame, ParcelAnswer, ParcelFrame, Receipt
from hushcast_protocol.overlay.hops import Hop, is_mailbox, key_of
from hushcast_protocol.overlay.profile import Profile
from hushcast_protocol.overlay.trail import LABEL_SIZE
from hushcast_runtime.context import Context
from hushcast_runtime.store import Change
from hushcast_runtime.transports.base import TransportError

MAX_CONNECTIONS = 4096  # links of other relays to us at once: each of a full roster may have two
MAX_ANSWERING = 1024  # drops of unnamed connections that are carried out at once, and as many parcels
ANONYMOUS_TIMEOUT = 60.0  # seconds in which an unnamed connection hands in its one frame, up to half a MiB
RECEIPT_WITHIN = 30.0  # seconds in which it must take the answer: who dropped a message waits no longer

# Seconds before a link ends that brings more than fits, and before what was accepted is tried again.
FULL_PAUSE = 5.0
TRIED_AT_ONCE = 16  # accepted messages for which there is still no room until the others wait, too

_LABEL = "label"

TakeListed = Callable[[Message], Awaitable[None]]
"""Where the subscriber is a listed root: takes every new message that passes its relay."""


class Relay:
    """One relay's part in the overlay."""

    def __init__(
        self,
        identity: Identity,
        profile: Profile,
        rosters: RosterKeeper,
        connector: Connector,
        take_listed: TakeListed,
        context: Context,
    ) -> None:
        env, store, counters = context.env, context.store, context.counters
        self.id: RelayId = identity.seed.public()
        self._identity = identity
        self._rosters = rosters
        self._calendar = rosters.calendar
        self._connector = connector
        self._take_listed = take_listed
        self._env = env
        self._store = store
        self._counters = counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._spool = Spool(store)
        self.leasing = Leasing(identity, rosters, self._pass_on, context)
        memory = RecentIds(env.elapsed())
        self._router = Router(self.id, profile, self.leasing.book, memory, env.randomness(LABEL_SIZE))
        detours = None
        if profile.detours:
            detours = Detours(self.id, rosters, self.leasing, self._router, self._spool, env, counters)
        self.peers = Peers(identity.seed, connector, self._spool, detours, self._locate, self, context)
        self._placing = Placing(self._spool, detours, self._router, env, counters)
        self._rate_limiter = RateLimiter(env)
        self.kept_links = KeptLinks(self.leasing, self.peers, context)
        self._strangers = strangers_room(env, counters)
        self._answering: Counter[type] = Counter()  # a parcel takes minutes, and drops do not wait for them
        self.admission = AdmissionControl(self.id, rosters, env, self.leasing.fullness)
        self._accepted = Accepted(store, self._spool)
        self._waiting: deque[bytes] | None = None  # of these, what there is no room for

    async def load(self) -> None:
        """Read back leases, and take up the messages that a restart interrupted."""
        await self.leasing.load()
        await self._load_label()
        hops = await self._spool.load()
        self._wait_for_room(*await self._accepted.load(), pause=0.0)
        for hop in hops:
            self.peers.resume(hop)

    async def keep_time(self) -> None:
        """Take a fresh trail label and forget what has lapsed with every epoch, until cancelled."""
        while True:
            await self._env.sleep_until(self._calendar.epoch_start(self._calendar.epoch(self._env.now()) + 1))
            label = self._env.randomness(LABEL_SIZE)
            self._router.use_label(label)
            self._store.write_soon(Change(_LABEL, b"", label))
            self.leasing.lapse()
            if self._env.is_certain():
                self._counters.add("messages_expired", self._spool.expire(self._is_open))

    async def _load_label(self) -> None:
        """Take up the label of before a restart: by it the relay knows what passed it then."""
        for _, label in await self._store.scan(_LABEL):
            self._router.use_label(label)
        fresh = self._env.randomness(LABEL_SIZE)
        self._router.use_label(fresh)
        await self._store.write(Change(_LABEL, b"", fresh))

    async def accept(self, stream: trio.abc.Stream) -> OverlayChannel:
        """Take a stream through the handshake; raises a `PeerError` or `TransportError`."""
        return await self._connector.accept(stream, self._identity.seed, as_relay=True)

    async def serve(self, channel: OverlayChannel) -> None:
        """Answer one incoming connection; raises a `PeerError` or `TransportError`."""
        if channel.peer is None:
            await self._serve_anonymous(channel)
        elif self._rosters.relay(channel.peer) is not None:
            await self.peers.serve(channel)
        else:
            raise DecodeError("a relay that no roster lists")

    async def take_forwards(self, messages: list[Message], previous: bytes) -> list[int]:
        """Take over messages from a previous hop; return the places of those that nothing here routes.

        Raises a `PeerError` at the first that is malformed, `TransportError` while the spool is full, or
        where this relay's clock may be wrong: the previous hop keeps them and tries again.
        """
        if self._spool.is_full(sum(len(message.body) for message in messages)):
            self._counters.add("refused_quota")
            await trio.sleep(FULL_PAUSE)
            raise TransportError("the spool is full")
        good = []
        is_held = False
        try:
            open_days = self._open_days()
            for message in messages:
                self._counters.add("messages_received")
                check_message(message)
                if message.day in open_days:
                    good.append(message)
                elif self._env.is_certain():
                    self._counters.add("refused_day")
                else:
                    raise TransportError("a message of another day, and the clock is not certain")
        finally:
            unrouted, is_held = await self._route(good, previous)
        if is_held:
            self._counters.add("refused_quota")
            await trio.sleep(FULL_PAUSE)
            raise TransportError("the spool has no room for a next hop")
        if not unrouted:
            return []
        strange = {message.id for message in unrouted}
        return [place for place, message in enumerate(messages) if message.id in strange]

    async def take_parcel(self, sealed: bytes, previous: bytes) -> ParcelAnswer:
        """Carry out a parcel from `previous` (a relay's key, or `ORIGIN`)."""
        return await self.leasing.take_parcel(sealed, previous)

    def note_sent(self, message: Message, hop: Hop) -> None:
        """Trace a message going out."""
        self._tracer.observe(observed.Sent(message.id, message.tokens, key_of(hop)))

    def note_unreached(self, hop: Hop) -> None:
        """Trace that a next hop was not reached."""
        self._tracer.observe(observed.Unreached(key_of(hop)))

    async def _serve_anonymous(self, channel: OverlayChannel) -> None:
        with self._strangers.place(ANONYMOUS_TIMEOUT):
            frame = await channel.one(ANONYMOUS_TIMEOUT)
        # What was handed in is carried out, whoever comes meanwhile; only its answer may give way again.
        self._answering[type(frame)] += 1
        try:
            if isinstance(frame, ParcelFrame):
                answer = await _while_open(channel, self._answer_anonymous, frame)
            else:
                answer = await self._answer_anonymous(frame)
        finally:
            self._answering[type(frame)] -= 1
        with self._strangers.place(RECEIPT_WITHIN):
            await channel.send(answer)
            await channel.finish()

    async def _answer_anonymous(self, frame: OverlayFrame) -> Wire:
        if not isinstance(frame, Drop | ParcelFrame):
            raise DecodeError("an unnamed peer sent a frame that only relays send")
        full = self._answering[type(frame)] > MAX_ANSWERING
        refused: Declined | None = "quota" if full else self.admission.refusal(frame)
        if refused is not None:
            self._counters.add(f"refused_{refused}")
        if isinstance(frame, Drop):
            return Receipt(refused) if refused else await self._take_drop(frame.message)
        if refused is None:
            answer = await self.take_parcel(frame.sealed, ORIGIN)
            return ParcelAnswer(frame.number, answer.refused, answer.missing)
        return ParcelAnswer(frame.number, refused, ())

    async def _take_drop(self, message: Message) -> Receipt:
        """Answer before any look-up: neither verdict nor delay tells whether anybody subscribes."""
        try:
            check_message(message)
            if message.trail != bytes(TRAIL_SIZE):
                raise DecodeError("a message is dropped with a trail that is not empty")
        except (DecodeError, AuthenticationError):
            self._counters.add("refused_form")
            return Receipt("form")
        if not self._is_open(message.day):
            self._counters.add("refused_day")
            return Receipt("day")
        if self._spool.is_full(len(message.body)):
            self._counters.add("refused_quota")
            return Receipt("quota")
        self._counters.add("messages_dropped_here")
        self._tracer.observe(observed.Drop(message.id, message.tokens, len(message.body)))
        key = await self._accepted.take(message)
        self._spawn(self._route_accepted, key, message)
        return Receipt("accepted")

    async def _route_accepted(self, key: bytes, message: Message) -> bool:
        """Route what was dropped here; return whether it has left, and keep it for later if not."""
        _, is_held = await self._route([message], ORIGIN, key)
        if is_held:
            self._wait_for_room(key)
        return not is_held

    def _wait_for_room(self, *keys: bytes, pause: float = FULL_PAUSE) -> None:
        if self._waiting is not None:
            self._waiting.extend(keys)
        elif keys:
            self._waiting = deque(keys)
            self._spawn(self._try_again, self._waiting, pause)

    async def _try_again(self, waiting: deque[bytes], pause: float) -> None:
        """Route what there was no room for, in order of arrival, until all is gone."""
        while waiting:
            await trio.sleep(pause)
            tries = TRIED_AT_ONCE
            for _ in range(len(waiting)):
                key = waiting[0]
                message = await self._accepted.read(key)
                if self._is_open(message.day):
                    has_left = await self._route_accepted(key, message)
                elif has_left := self._env.is_certain():
                    self._counters.add("messages_expired")
                    self._store.write_soon(self._accepted.settle(key))
                else:
                    waiting.append(key)
                waiting.popleft()
                tries -= not has_left
                if not tries:
                    break
            pause = FULL_PAUSE
        self._waiting = None

    async def _route(
        self, messages: list[Message], previous: bytes, accepted: bytes | None = None
    ) -> tuple[list[Message], bool]:
        """Decide on checked messages, send and spool what has a route, settle what was `accepted`.

        Returns, once it is durable, the messages that have no route here, and whether there is no room for
        some: these must be brought again. The next hop need not wait for this relay's disk: should the relay
        die before it has written, it has acknowledged nothing, gets the messages again, and the next hop
        knows their ids.
        """
        placed: list[tuple[Hop, Spooled]] = []
        unrouted: list[Message] = []
        changes: list[Change] = []
        is_held = False
        now = self._env.elapsed()
        for message in messages:
            decision = await self._decide(message, previous, now)
            if decision.outcome is Outcome.UNROUTED:
                unrouted.append(message)
            if decision.sends:
                spare = 0 if accepted is None else len(message.body)
                ways, more = self._placing.place(decision.sends, self.peers.away, spare)
                is_held |= more
                placed += self._spool.take(ways, changes)
        if accepted is not None and not is_held:
            changes.append(self._accepted.settle(accepted))
        self.peers.enqueue(placed)
        if changes or accepted is not None:
            await self._store.write(*changes)
        if previous != ORIGIN and (debt := self._rate_limiter.debt(previous, (hop for hop, _ in placed))):
            self._counters.add("links_slowed")
            await trio.sleep(debt)
        return unrouted, is_held

    async def _decide(self, message: Message, previous: bytes, now: float) -> Decision:
        try:
            decision = self._router.route(message, previous, now)
        except DecodeError:
            self._counters.add("refused_form")
            return Decision(Outcome.LOOP)
        if decision.is_again:  # tried again, not received again
            return decision
        self._tracer.observe(
            observed.Received(
                message.id,
                message.tokens,
                None if previous == ORIGIN else previous,
                decision.outcome.value,
                decision.popcount,
                len(message.body),
            )
        )
        if decision.outcome in _COUNTED:
            self._counters.add(_COUNTED[decision.outcome])
        if decision.outcome not in (Outcome.LOOP, Outcome.DUPLICATE):
            await self._take_listed(message)
        return decision

    async def _pass_on(self, relay: Hop, sealed: bytes, patience: float) -> ParcelAnswer:
        return await self.peers.request(relay, sealed, patience)

    def _locate(self, hop: Hop) -> Address | None:
        if is_mailbox(hop):
            return self.leasing.book.mailbox_address(hop)
        relay = self._rosters.relay(key_of(hop))
        return relay.address if relay is not None else None

    def _is_open(self, day: int) -> bool:
        return day in self._open_days()

    def _open_days(self) -> range:
        return self._calendar.open_days(self._env.now())


async def _while_open(
    channel: OverlayChannel, answer: Callable[[OverlayFrame], Awaitable[Wire]], frame: OverlayFrame
) -> Wire:
    """Return an answer; raise `TransportError` as soon as nobody waits for it any more."""
    answers: list[Wire] = []
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            with suppress(PeerError, TransportError):
                await channel.receive()
            nursery.cancel_scope.cancel()  # closed, or somebody who says more than the one thing to be said

        nursery.start_soon(watch)
        answers.append(await answer(frame))
        nursery.cancel_scope.cancel()
    if not answers:
        raise TransportError("the other end left before its parcel was carried out")
    return answers[0]


_COUNTED = {
    Outcome.DUPLICATE: "messages_duplicate",
    Outcome.LOOP: "messages_looped",
    Outcome.UNROUTED: "messages_unrouted",
}
