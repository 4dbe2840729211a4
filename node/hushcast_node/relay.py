"""The relay: takes drops, parcels and messages from others, lets the pure core decide, sends on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from hushcast_node.admission import strangers_room
from hushcast_node.connector import Connector, OverlayChannel
from hushcast_node.detours import Detours
from hushcast_node.flows import Flows
from hushcast_node.identity import Identity
from hushcast_node.intake import Declined, Intake
from hushcast_node.keeping import KeptLinks
from hushcast_node.leasing import Leasing
from hushcast_node.peers import Peers
from hushcast_node.rosters import RosterKeeper
from hushcast_node.spool import Spool
from hushcast_node.tracing import Tracer
from hushcast_protocol.addresses import Address
from hushcast_protocol.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.forwarding import Decision, Outcome, RecentIds, Router, Send
from hushcast_protocol.frames import Drop, OverlayFrame, ParcelAnswer, ParcelFrame, Receipt
from hushcast_protocol.hops import Hop, is_mailbox, key_of
from hushcast_protocol.messages import Message, check_message
from hushcast_protocol.profile import Profile
from hushcast_protocol.tokens import ORIGIN
from hushcast_protocol.trail import LABEL_SIZE, TRAIL_SIZE
from hushcast_protocol.wire import RelayId, Wire, decoder, encode
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Change, Store
from hushcast_runtime.transports.base import TransportError

MAX_CONNECTIONS = 4096  # links of other relays to us at once: each of a full roster may have two
MAX_ANSWERING = 1024  # frames of unnamed connections that are carried out at once
ANONYMOUS_TIMEOUT = 60.0  # seconds in which an unnamed connection hands in its one frame, up to half a MiB
RECEIPT_WITHIN = 30.0  # seconds in which it must take the answer: who dropped a message waits no longer

FULL_PAUSE = 5.0  # seconds before a link ends that brings more than fits: the other end is back at once

_INTAKE, _LABEL = "intake", "label"
_decode_message: Callable[[bytes], Message] = decoder(Message, "message", 512 * 1024)

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
        env: Environment,
        store: Store,
        counters: Counters,
        tracer: Tracer,
        nursery: trio.Nursery,
    ) -> None:
        self.id: RelayId = identity.seed.public()
        self._identity = identity
        self._rosters = rosters
        self._calendar = rosters.calendar
        self._connector = connector
        self._take_listed = take_listed
        self._env = env
        self._store = store
        self._counters = counters
        self._tracer = tracer
        self._nursery = nursery
        self._spool = Spool(store)
        self.leasing = Leasing(
            self.id,
            identity.parcel_key,
            identity.filter_key,
            rosters,
            self._pass_on,
            env,
            store,
            counters,
            tracer,
        )
        memory = RecentIds(env.now())
        self._router = Router(self.id, profile, self.leasing.book, memory, env.randomness(LABEL_SIZE))
        detours = None
        if profile.detours:
            detours = Detours(self.id, rosters, self.leasing, self._router, self._spool, env, counters)
        self.peers = Peers(
            identity.seed, connector, self._spool, detours, self._locate, self, env, counters, nursery
        )
        self._flows = Flows(env)
        self.kept_links = KeptLinks(self.leasing, self.peers, env, nursery)
        self._intakes = 0
        self._strangers = strangers_room(env, counters)
        self._answering = 0
        self.intake = Intake(self.id, rosters, env, self.leasing.fullness)

    async def load(self) -> None:
        """Read back leases, and take up the messages that a restart interrupted."""
        await self.leasing.load()
        await self._load_label()
        hops = await self._spool.load()
        for key, value in await self._store.scan(_INTAKE):
            await self._route([_decode_message(value)], ORIGIN, Change(_INTAKE, key, None))
        for hop in hops:
            self.peers.resume(hop)

    async def keep_time(self) -> None:
        """Take a fresh trail label and forget what has lapsed with every epoch, until cancelled."""
        while True:
            now = self._env.now()
            await trio.sleep(self._calendar.epoch_start(self._calendar.epoch(now) + 1) - now)
            label = self._env.randomness(LABEL_SIZE)
            self._router.use_label(label)
            self._store.write_soon(Change(_LABEL, b"", label))
            self.leasing.lapse()
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

        Raises a `PeerError` at the first that is malformed, `TransportError` while the spool is full: the
        previous hop keeps them and tries again.
        """
        if self._spool.is_full(sum(len(message.body) for message in messages)):
            self._counters.add("refused_quota")
            await trio.sleep(FULL_PAUSE)
            raise TransportError("the spool is full")
        try:
            good = []
            open_days = self._open_days()
            for message in messages:
                self._counters.add("messages_received")
                check_message(message)
                if message.day not in open_days:
                    self._counters.add("refused_day")
                else:
                    good.append(message)
        finally:
            unrouted = await self._route(good, previous)
        if not unrouted:
            return []
        strange = {message.id for message in unrouted}
        return [place for place, message in enumerate(messages) if message.id in strange]

    async def take_parcel(self, sealed: bytes, previous: bytes) -> ParcelAnswer:
        """Carry out a parcel from `previous` (a relay's key, or `ORIGIN`)."""
        return await self.leasing.take_parcel(sealed, previous)

    def note_sent(self, message: Message, hop: Hop) -> None:
        """Trace a message going out."""
        self._tracer.observe("sent", message=message.id, tokens=message.tokens, next=key_of(hop))

    def note_unreached(self, hop: Hop) -> None:
        """Trace that a next hop was not reached."""
        self._tracer.observe("unreached", next=key_of(hop))

    async def _serve_anonymous(self, channel: OverlayChannel) -> None:
        with self._strangers.place(ANONYMOUS_TIMEOUT):
            frame = await channel.one(ANONYMOUS_TIMEOUT)
        # What was handed in is carried out, whoever comes meanwhile; only its answer may give way again.
        self._answering += 1
        try:
            if isinstance(frame, ParcelFrame):
                answer = await _while_open(channel, self._answer_anonymous, frame)
            else:
                answer = await self._answer_anonymous(frame)
        finally:
            self._answering -= 1
        with self._strangers.place(RECEIPT_WITHIN):
            await channel.send(answer)
            await channel.finish()

    async def _answer_anonymous(self, frame: OverlayFrame) -> Wire:
        if not isinstance(frame, Drop | ParcelFrame):
            raise DecodeError("an unnamed peer sent a frame that only relays send")
        full = self._answering > MAX_ANSWERING
        refused: Declined | None = "quota" if full else self.intake.refusal(frame)
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
        self._tracer.observe("drop", message=message.id, tokens=message.tokens, size=len(message.body))
        self._intakes += 1
        key = message.id + self._intakes.to_bytes(8, "big")
        await self._store.write(Change(_INTAKE, key, encode(message)))
        self._nursery.start_soon(self._route, [message], ORIGIN, Change(_INTAKE, key, None))
        return Receipt("accepted")

    async def _route(self, messages: list[Message], previous: bytes, *settled: Change) -> list[Message]:
        """Decide on checked messages, send and spool what has a route; return the others once it is durable.

        The next hop need not wait for this relay's disk: should the relay die before it has written, it has
        acknowledged nothing, gets the messages again, and the next hop knows their ids.
        """
        sends: list[Send] = []
        unrouted: list[Message] = []
        for message in messages:
            decision = await self._decide(message, previous)
            sends += decision.sends
            if decision.outcome is Outcome.UNROUTED:
                unrouted.append(message)
        self.peers.enqueue(self._spool.put(self._within_shares(sends), *settled))
        if sends or settled:
            await self._spool.durable()
        if previous != ORIGIN and (debt := self._flows.debt(previous, (send.hop for send in sends))):
            self._counters.add("links_slowed")
            await trio.sleep(debt)
        return unrouted

    def _within_shares(self, sends: list[Send]) -> list[Send]:
        fit = [send for send in sends if self._spool.has_share(send.hop, len(send.message.body))]
        self._counters.add("messages_over_share", len(sends) - len(fit))
        return fit

    async def _decide(self, message: Message, previous: bytes) -> Decision:
        try:
            decision = self._router.route(message, previous, self._env.now())
        except DecodeError:
            self._counters.add("refused_form")
            return Decision(Outcome.LOOP)
        self._tracer.observe(
            "received",
            message=message.id,
            tokens=message.tokens,
            previous=None if previous == ORIGIN else previous,
            outcome=decision.outcome.value,
            popcount=decision.popcount,
            size=len(message.body),
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
