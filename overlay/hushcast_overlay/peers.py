"""Peers: for every next hop a bounded queue and, while there is something to say, an open link."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog
import trio

from hushcast_overlay.connector import Connector, OverlayChannel
from hushcast_overlay.detours import Detours
from hushcast_overlay.dials import Dials
from hushcast_overlay.peer import Peer
from hushcast_overlay.session import Session
from hushcast_overlay.spool import Spool, Spooled
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frames import Ack, Forward, OverlayFrame, ParcelAnswer, ParcelFrame, Ping
from hushcast_protocol.overlay.hops import Hop, is_mailbox, key_of, relay_hop
from hushcast_runtime.backoff import Backoff
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError

MAX_QUEUE = 4 * 1024 * 1024  # bytes waiting in memory for one next hop; more waits in the spool on disk
FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 60.0  # seconds between attempts to reach a next hop
MAX_LINKS_A_PEER = 4  # two where both dial at once, two more whose end is not known yet after a restart
DETOUR_AFTER = 30.0  # seconds without an acknowledgement; a relay that restarts is back by then

log = structlog.get_logger("peers")

Locate = Callable[[Hop], Address | None]
"""Where a next hop is reached now, if that is known."""


class Handlers(Protocol):
    """What peers hand in, and where to."""

    async def take_forwards(self, messages: list[Message], previous: bytes) -> list[int]:
        """Take over messages from a previous hop; returns once they are spooled. Raises a `PeerError`.

        Returns the places of those that nothing here routes when they come from there.
        """

    async def take_parcel(self, sealed: bytes, previous: bytes) -> ParcelAnswer:
        """Carry out a sealed parcel from a peer; the answer's number is for the caller to set."""

    def note_sent(self, message: Message, hop: Hop) -> None:
        """Hear that a message goes out to a next hop."""

    def note_unreached(self, hop: Hop) -> None:
        """Hear that a next hop was not reached."""


class Peers:
    """All links of one relay under its own name."""

    def __init__(
        self,
        us: Seed,
        connector: Connector,
        spool: Spool,
        detours: Detours | None,
        locate: Locate,
        handlers: Handlers,
        env: Environment,
        counters: Counters,
        spawn: Callable[..., None],
    ) -> None:
        self._us = us
        self._connector = connector
        self._spool = spool
        self._detours = detours
        self._locate = locate
        self._handlers = handlers
        self._env = env
        self._counters = counters
        self._spawn = spawn
        self._peers: dict[Hop, Peer] = {}
        self.away: set[Hop] = set()
        """The next hops that messages go around."""
        self._dials = Dials()

    def open_links(self) -> int:
        """Return the number of open links."""
        return sum(len(peer.sessions) for peer in self._peers.values())

    def queued(self) -> int:
        """Return the bytes waiting in memory."""
        return sum(peer.queued for peer in self._peers.values())

    def resume(self, hop: Hop) -> None:
        """Send what the spool holds for `hop` since before a restart."""
        peer = self._peer(hop)
        peer.behind = True
        peer.waiting_since = self._env.elapsed()
        self._advance(peer)

    def enqueue(self, placed: Iterable[tuple[Hop, Spooled]]) -> None:
        """Send spooled messages to next hops as soon as these can take them."""
        touched: dict[Hop, Peer] = {}
        for hop, item in placed:
            if (peer := touched.get(hop)) is None:
                peer = touched[hop] = self._peer(hop)
                if peer.waiting_since is None:
                    peer.waiting_since = self._env.elapsed()
                    peer.stir()
            if peer.away or peer.behind or peer.queued + len(item.message.body) > MAX_QUEUE:
                peer.behind = True  # it is in the spool and will be read back in its turn
                peer.passed_over += 1
            else:
                peer.hold(item)
        for peer in touched.values():
            self._advance(peer)

    async def request(self, relay: Hop, sealed: bytes, patience: float) -> ParcelAnswer:
        """Hand a parcel to a relay; raise `TransportError` if no answer comes within `patience` seconds."""
        try:
            with self._wanted(relay) as peer, trio.fail_after(patience):
                while not peer.sessions:
                    await peer.connected()
                return await peer.newest().request(sealed)
        except trio.TooSlowError:
            raise TransportError("a relay did not answer a parcel in time") from None

    def is_linked(self, hop: Hop) -> bool:
        """Tell whether there is a link to `hop`."""
        return bool((peer := self._peers.get(hop)) and peer.sessions)

    def ping(self, hop: Hop) -> None:
        """Show a sign of life on the link to `hop`, if there is one."""
        if self.is_linked(hop):
            self._peers[hop].newest().ping()

    async def connect(self, hop: Hop, patience: float) -> bool:
        """Have a link to `hop` opened; return whether that succeeded within `patience` seconds."""
        with self._wanted(hop) as peer:
            with trio.move_on_after(patience):
                await peer.connected()
            return bool(peer.sessions)

    @contextmanager
    def _wanted(self, hop: Hop) -> Iterator[Peer]:
        """Have a link to `hop` opened for as long as somebody waits for it."""
        peer = self._peer(hop)
        peer.requests += 1
        try:
            self._advance(peer)
            yield peer
        finally:
            peer.requests -= 1
            peer.give_up()
            self._drop_if_unused(peer)

    def serve(self, channel: OverlayChannel) -> Awaitable[None]:
        """Take part in a link that a peer opened, until it ends."""
        assert channel.peer is not None
        return self._take_part(self._peer(relay_hop(channel.peer)), channel)

    async def _take_part(self, peer: Peer, channel: OverlayChannel) -> None:
        session = Session(channel, self._spawn)
        if len(peer.sessions) >= MAX_LINKS_A_PEER:
            peer.sessions[0].scope.cancel()
        peer.linked(session)
        self._dials.answered(peer.hop)
        self._note_back(peer)
        try:
            with session.scope:
                self._advance(peer)
                while batch := await channel.receive():
                    await self._take(peer, session, batch)
                    session.alive()
        except PeerError as error:
            self._counters.add("refused_form")
            log.debug("a link was closed", reason=str(error))
        except TransportError as error:
            self._counters.add("links_failed")
            log.debug("a link broke", reason=str(error))
        finally:
            session.end()
            self._end(peer, session)
            await channel.aclose()

    async def _take(self, peer: Peer, session: Session, batch: list[OverlayFrame]) -> None:
        forwards = [frame.message for frame in batch if isinstance(frame, Forward)]
        for frame in batch:
            if isinstance(frame, Ack):
                self._take_ack(peer, session, frame)
            elif isinstance(frame, Ping):
                session.acknowledge(0)
            elif isinstance(frame, ParcelFrame):
                self._spawn(self._answer, peer, session, frame, session.begin_parcel())
            elif isinstance(frame, ParcelAnswer):
                session.answered(frame)
            elif not isinstance(frame, Forward):
                raise DecodeError("a peer sent a frame that named peers do not send")
        if forwards:
            unrouted = await self._handlers.take_forwards(forwards, key_of(peer.hop))
            session.acknowledge(len(forwards), unrouted if self._detours is not None else ())

    def _take_ack(self, peer: Peer, session: Session, ack: Ack) -> None:
        taken, unrouted = session.acknowledged(ack)
        if self._detours is not None:
            self._detours.routed(peer.hop, taken)
            if unrouted:
                self._spawn(self._reroute, self._detours, peer.hop, unrouted)
        else:
            taken += unrouted
        self._spool.done(taken)
        if taken or unrouted:
            peer.backoff = None
            waits = peer.behind or peer.in_memory()
            peer.waiting_since = self._env.elapsed() if waits else None
        self._advance(peer)

    async def _answer(
        self, peer: Peer, session: Session, frame: ParcelFrame, scope: trio.CancelScope
    ) -> None:
        try:
            with scope:
                answer = await self._handlers.take_parcel(frame.sealed, key_of(peer.hop))
                session.post(ParcelAnswer(frame.number, answer.refused, answer.missing))
        finally:
            session.end_parcel(scope)

    def _end(self, peer: Peer, session: Session) -> None:
        peer.sessions.remove(session)
        if not session.was_fruitless():
            peer.backoff = None
        elif peer.backoff is None:
            peer.backoff = self._backoff()
        if session.unacknowledged:
            session.unacknowledged.clear()
            peer.leave_to_spool()
        self._note_away(peer)
        self._advance(peer)
        self._drop_if_unused(peer)

    def _note_away(self, peer: Peer) -> None:
        """See whether a peer has been silent for so long that its messages must go around it."""
        if self._until_away(peer) <= 0:
            peer.away = True
            self.away.add(peer.hop)
            self._counters.add("next_hops_away")
            peer.leave_to_spool()

    def _until_away(self, peer: Peer) -> float:
        """Return the seconds of silence after which messages for a peer go around it, if they ever do."""
        if self._detours is None or peer.away or peer.waiting_since is None:
            return math.inf
        if self._locate(peer.hop) is None:
            return 0.0
        if is_mailbox(peer.hop):
            return math.inf
        return peer.waiting_since + DETOUR_AFTER - self._env.elapsed()

    def _note_back(self, peer: Peer) -> None:
        if peer.away:
            peer.away = False
            self.away.discard(peer.hop)
            peer.waiting_since = self._env.elapsed() if peer.behind else None

    async def _divert(self, detours: Detours, peer: Peer) -> None:
        """Send what waits for a peer that is away around it, for as long as it stays away."""
        backoff = self._backoff()
        try:
            while peer.away and peer.behind:
                before = peer.passed_over
                items = await self._spool.waiting(peer.hop)
                placed = await detours.around(peer.hop, items, self.away)
                self.enqueue(placed)
                peer.behind = bool(items) or peer.passed_over != before
                if items and not placed:
                    await trio.sleep(backoff.next())
        finally:
            peer.diverting = False
        if not peer.behind:
            peer.waiting_since = None
        self._advance(peer)
        self._drop_if_unused(peer)

    async def _reroute(self, detours: Detours, hop: Hop, items: list[Spooled]) -> None:
        placed = await detours.unrouted(hop, items, self.away)
        self.enqueue(placed)
        left = [item for item in items if self._spool.holds(item)]
        if left:  # there is no other relay: it is tried again, but not at once
            await trio.sleep(LONGEST_BACKOFF)
            self.resume(hop)

    def _peer(self, hop: Hop) -> Peer:
        if (peer := self._peers.get(hop)) is None:
            peer = self._peers[hop] = Peer(hop)
        return peer

    def _drop_if_unused(self, peer: Peer) -> None:
        busy = peer.sessions or peer.dialling or peer.refilling or peer.diverting or peer.wanted()
        # That a relay is away is remembered while it is listed: the next message must not wait for it anew.
        if busy or (peer.away and self._locate(peer.hop) is not None):
            return
        if self._peers.get(peer.hop) is peer:
            del self._peers[peer.hop]
            self.away.discard(peer.hop)

    def _advance(self, peer: Peer) -> None:
        """Do whatever can be done now: send, read back from the spool, dial."""
        if peer.sessions:
            self._send(peer, peer.newest())
        elif peer.wanted() and not peer.dialling:
            peer.dialling = trio.CancelScope()
            self._spawn(self._dial, peer, peer.dialling)
        if peer.away:
            if peer.behind and not peer.diverting and self._detours is not None:
                peer.diverting = True
                self._spawn(self._divert, self._detours, peer)
        elif peer.behind and not peer.refilling and not peer.in_memory():
            peer.refilling = True
            self._spawn(self._refill, peer)

    def _send(self, peer: Peer, session: Session) -> None:
        sent: list[Spooled] = []
        size = passed = 0
        for item in peer.queue:
            if not session.has_room(size):
                break
            passed += 1
            peer.queued -= len(item.message.body)
            if self._spool.holds(item):
                sent.append(item)
                size += len(item.message.body)
        del peer.queue[:passed]
        if sent:
            self._counters.add("messages_sent", len(sent))
            session.forward(sent)
            for item in sent:
                self._handlers.note_sent(item.message, peer.hop)

    async def _refill(self, peer: Peer) -> None:
        try:
            before = peer.passed_over
            items = await self._spool.waiting(peer.hop)
            peer.behind = bool(items) or peer.passed_over != before
            for item in items:
                peer.hold(item)
        finally:
            peer.refilling = False
        self._advance(peer)
        self._drop_if_unused(peer)

    async def _dial(self, peer: Peer, scope: trio.CancelScope) -> None:
        try:
            with scope:
                await self._dial_while_wanted(peer)
        finally:
            peer.dialling = None
            if not peer.sessions:
                peer.backoff = None  # nobody wants it any more; who wants it next tries at once
        self._advance(peer)  # it may be wanted again since it was given up
        self._drop_if_unused(peer)

    async def _dial_while_wanted(self, peer: Peer) -> None:
        while True:
            if peer.backoff is not None:
                await self._pause(peer, peer.backoff)
            try:
                async with self._dials.turn(peer.hop):
                    if not peer.wanted() or peer.sessions:
                        return
                    channel = await self._open(peer.hop)
            except (TransportError, PeerError) as error:
                self._dials.failed(peer.hop)
                log.debug("a next hop was not reached", reason=str(error))
                peer.backoff = peer.backoff or self._backoff()
                self._handlers.note_unreached(peer.hop)
                peer.keep(self._spool.holds)
                self._note_away(peer)
                self._advance(peer)
                continue
            self._spawn(self._take_part, peer, channel)
            await peer.connected()

    async def _pause(self, peer: Peer, backoff: Backoff) -> None:
        pause = max(0.0, min(backoff.next(), self._until_away(peer)))
        with trio.move_on_after(pause) as paused:
            await peer.stirred()
        if not paused.cancelled_caught:
            backoff.reset()

    def _backoff(self) -> Backoff:
        return Backoff(FIRST_BACKOFF, LONGEST_BACKOFF, self._env.randomness)

    async def _open(self, hop: Hop) -> OverlayChannel:
        address = self._locate(hop)
        if address is None:
            raise TransportError("a next hop is in no roster any more")
        return await self._connector.named(self._us, key_of(hop), address)
