"""Peers: drives the hop machine of each relay or host that this one sends to, or is sent to by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.relay.acknowledgements import Acknowledgements
from hushcast_overlay.relay.detours import Detours
from hushcast_overlay.relay.dials import Dials
from hushcast_overlay.relay.link_deadlines import LinkDeadlines
from hushcast_overlay.relay.link_reader import LinkReader
from hushcast_overlay.relay.own_relay import OwnRelay
from hushcast_overlay.relay.session import Session
from hushcast_protocol.base import observations
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.hop import DETOUR_AFTER, NextHop
from hushcast_protocol.base.link.hop_values import (
    Close,
    HopActions,
    HopCommand,
    HopRules,
    ReadBack,
    Reroute,
    SendItems,
    Settle,
)
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.frame_directions import (
    BetweenCover,
    FromRelay,
    ToChild,
    decode_from_relay,
    decode_to_child,
)
from hushcast_protocol.overlay.frames import Forward, ParcelAnswer, Ping
from hushcast_protocol.overlay.hops import is_host, is_keeper, key_of, relay_hop, waits
from hushcast_protocol.overlay.keeper_frames import HandIn
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.spool import READ_AT_ONCE, Spool, SpooledMessage, by_hop
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

PeerChannel = Channel[FromRelay] | Channel[ToChild]
"""A link to a next hop, or from a previous one."""


class Peer(NextHop[Session, SpooledMessage]):
    """A hop machine, and those that wait on its behalf."""

    __slots__ = ("dial", "due", "hop", "linked")

    def __init__(self, hop: Hop, rules: HopRules[SpooledMessage]) -> None:
        super().__init__(rules)
        self.hop = hop
        self.dial: trio.CancelScope | None = None
        self.due = math.inf  # when it is looked at its deadline, which is no earlier
        self.linked: trio.Event | None = None

    async def connected(self) -> None:
        """Return when a link has come, or at once if there is one; it may be gone again."""
        if not self.links:
            if self.linked is None:
                self.linked = trio.Event()
            await self.linked.wait()


class Peers:
    """All links of one relay under its own name."""

    def __init__(
        self,
        us: Seed,
        connector: Connector,
        spool: Spool,
        detours: Detours | None,
        relay: OwnRelay,
        context: Context,
    ) -> None:
        self._us = us
        self._connector = connector
        self._spool = spool
        self._detours = detours
        self._relay = relay
        self._now = context.env.elapsed
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._timetable = context.timetable
        self._rules = HopRules(spool.holds, context.env.randomness, detours is not None)
        self._rules_of_hosts = HopRules(spool.holds, context.env.randomness, goes_around=False)
        self._peers: dict[Hop, Peer] = {}
        self.away: set[Hop] = set()
        """The next hops that messages go around."""
        self._dials = Dials()
        self._deadlines = LinkDeadlines(context.timetable, self._now)
        hears = self._do, self._heard, self._over
        self._reader = LinkReader(
            relay, *hears, Acknowledgements(spool, context), detours is not None, context
        )
        context.timetable.at_end(self._close)

    def open_links(self) -> int:
        """Return the number of open links."""
        return sum(len(peer.links) for peer in self._peers.values())

    def queued(self) -> int:
        """Return the bytes waiting in memory."""
        return sum(peer.queued for peer in self._peers.values())

    def resume(self, hop: Hop) -> None:
        """Send what the spool holds for `hop` since before a restart."""
        peer = self._peer(hop)
        self._do(peer, peer.resume(self._now()))

    def enqueue(self, placed: Mapping[Hop, list[SpooledMessage]]) -> None:
        """Send spooled messages to next hops as soon as these can take them."""
        now = self._now()
        for hop, items in placed.items():
            peer = self._peer(hop)
            self._do(peer, peer.enqueue(items, now))

    async def request(self, relay: Hop, sealed: bytes, patience: float) -> ParcelAnswer:
        """Hand a parcel to a relay; raise `TransportError` if no answer comes within `patience` seconds."""
        try:
            with self._wanted(relay) as peer, trio.fail_after(patience):
                while not peer.links:
                    await peer.connected()
                return await peer.links[-1].request(sealed)
        except trio.TooSlowError:
            raise TransportError("a relay did not answer a parcel in time") from None

    async def say(self, relay: Hop, frame: BetweenCover, patience: float) -> None:
        """Write a frame to a relay; raise `TransportError` if it is not out within `patience` seconds."""
        try:
            with self._wanted(relay) as peer, trio.fail_after(patience):
                while not peer.links:
                    await peer.connected()
                await peer.links[-1].say(frame)
        except trio.TooSlowError:
            raise TransportError("a relay was not told something in time") from None

    def is_linked(self, hop: Hop) -> bool:
        """Tell whether there is a link to `hop`."""
        return bool((peer := self._peers.get(hop)) and peer.links)

    def ping(self, hop: Hop) -> None:
        """Show a sign of life on the link to `hop`: if it was silent, neither end is to take it for idle."""
        if self.is_linked(hop) and (link := self._peers[hop].links[-1]).is_quiet(self._now()):
            link.post(Ping())

    async def connect(self, hop: Hop, patience: float) -> bool:
        """Have a link to `hop` opened; return whether that succeeded within `patience` seconds."""
        with self._wanted(hop) as peer:
            with trio.move_on_after(patience):
                await peer.connected()
            return bool(peer.links)

    @contextmanager
    def _wanted(self, hop: Hop) -> Iterator[Peer]:
        """Have a link to `hop` opened for as long as somebody waits for it."""
        peer = self._peer(hop)
        self._do(peer, peer.want(self._now()))
        try:
            yield peer
        finally:
            self._do(peer, peer.unwant())

    async def serve(self, channel: Channel[FromRelay]) -> bool:
        """Take part in a link that a peer opened, which is kept until it ends."""
        assert channel.peer is not None
        self._take_part(self._peer(relay_hop(channel.peer)), channel, is_dialled=False)
        return True

    def _take_part(self, peer: Peer, channel: PeerChannel, is_dialled: bool) -> None:
        carrier = HandIn if is_keeper(peer.hop) else Forward
        link = Session(channel, self._spawn, self._now(), carrier)
        self._dials.answered(peer.hop)
        actions = peer.link_up(link, is_dialled, self._now())
        if peer.linked is not None:
            peer.linked.set()
            peer.linked = None
        self._deadlines.add(link)
        self._do(peer, actions)
        self._reader.begin(peer, link)

    def _heard(self, link: Session) -> None:
        link.touch(self._now())
        self._deadlines.moved(link)

    def _over(self, link: Session) -> None:
        peer = link.peer
        self._deadlines.remove(link)
        self._do(peer, peer.link_ended(link, self._away_after(peer.hop), self._now()))

    def _close(self) -> None:
        """Close all links, of which nobody hears any more: the daemon ends."""
        for peer in self._peers.values():
            links, peer.links = peer.links, ()
            for link in links:
                link.end()
                link.channel.close()

    def _peer(self, hop: Hop) -> Peer:
        if (peer := self._peers.get(hop)) is None:
            peer = self._peers[hop] = Peer(
                hop, self._rules_of_hosts if is_host(hop) or is_keeper(hop) else self._rules
            )
        return peer

    def _do(self, peer: Peer, actions: HopActions[Session, SpooledMessage]) -> None:
        """Do what a machine asks for, and see to what it waits for."""
        for action in actions:
            if isinstance(action, SendItems):
                self._send(peer, action.link, action.items)
            elif isinstance(action, Settle):
                if self._detours is not None:
                    self._detours.routed(peer.hop, action.items)
                self._spool.done(action.items)
            elif isinstance(action, ReadBack):
                self._spawn(self._read_back, peer, action.after)
            elif isinstance(action, Reroute):
                self._spawn(self._reroute, peer.hop, action.items)
            elif isinstance(action, Close):
                action.link.give_up()
            else:
                self._do_named(peer, action)
        if peer.deadline < peer.due:
            peer.due = peer.deadline
            self._timetable.after(max(0.0, peer.due - self._now()), self._look, peer, peer.due)
        self._forget_if_unused(peer)

    def _do_named(self, peer: Peer, action: HopCommand) -> None:
        if action is HopCommand.DIAL:
            peer.dial = trio.CancelScope()
            self._spawn(self._dial, peer, peer.dial)
        elif action is HopCommand.STOP_DIALLING:
            assert peer.dial is not None
            peer.dial.cancel()
        elif action is HopCommand.GO_AROUND:
            self._spawn(self._go_around, peer)
        elif action is HopCommand.WENT_AWAY:
            self.away.add(peer.hop)
            self._counters.add("next_hops_away")
        else:
            self.away.discard(peer.hop)

    def _forget_if_unused(self, peer: Peer) -> None:
        # That a relay is away is remembered while it is listed: the next message must not wait for it anew.
        if not peer.is_unused or (peer.is_away and self._relay.places.locate(peer.hop) is not None):
            return
        if self._peers.get(peer.hop) is peer:
            del self._peers[peer.hop]
            self.away.discard(peer.hop)

    def _send(self, peer: Peer, link: Session, items: list[SpooledMessage]) -> None:
        self._counters.add("messages_sent", len(items))
        link.forward(items)
        self._deadlines.moved(link)
        if self._tracer.is_on:
            for item in items:
                sent = observations.Sent(item.message.id, item.message.tokens, key_of(peer.hop))
                self._tracer.observe(sent)

    def _look(self, peer: Peer, moment: float) -> None:
        """Move a machine whose deadline has come; if it was put off, that is when to look again."""
        if moment == peer.due:
            peer.due = math.inf
            # Sums of floats may differ in the last bit: the moment has come, whatever the clock says.
            self._do(peer, peer.tick(max(self._now(), moment)))

    async def _read_back(self, peer: Peer, after: SpooledMessage | None) -> None:
        items = await self._spool.waiting(peer.hop, after, READ_AT_ONCE)
        self._do(peer, peer.read_back(items, self._now()))

    async def _go_around(self, peer: Peer) -> None:
        """Send what waits for a peer that is away around it."""
        assert self._detours is not None
        after = self._detours.resting(peer.hop)
        items = await self._spool.waiting(peer.hop, after, READ_AT_ONCE)
        placed = await self._detours.around(peer.hop, items, self.away)
        self.enqueue(by_hop(placed))
        if rests := self._detours.resting(peer.hop) is not after:
            self._do(peer, peer.retry_later(self._now()))
        self._do(peer, peer.went_around(bool(items), bool(placed) or rests, self._now()))

    async def _reroute(self, hop: Hop, items: list[SpooledMessage]) -> None:
        assert self._detours is not None
        self.enqueue(by_hop(await self._detours.unrouted(hop, items, self.away)))
        if any(self._spool.holds(item) for item in items):  # there is no other relay
            peer = self._peer(hop)
            self._do(peer, peer.retry_later(self._now()))

    async def _dial(self, peer: Peer, scope: trio.CancelScope) -> None:
        channel: PeerChannel | None = None
        failure: TransportError | PeerError | None = None
        with scope:
            try:
                async with self._dials.turn(peer.hop):
                    if peer.needs_dial:
                        channel = await self._open(peer.hop)
            except (TransportError, PeerError) as error:
                failure = error
        if channel is not None:
            self._take_part(self._peer(peer.hop), channel, is_dialled=not scope.cancel_called)
        elif scope.cancel_called:
            return
        elif failure is None:
            self._do(peer, peer.dial_unneeded(self._now()))
        else:
            self._dials.failed(peer.hop)
            log.debug("a next hop was not reached", reason=str(failure))
            self._tracer.observe(observations.Unreached(key_of(peer.hop)))
            self._do(peer, peer.dial_failed(self._away_after(peer.hop), self._now()))

    def _away_after(self, hop: Hop) -> float:
        """Return the seconds of silence after which messages for a next hop go around it."""
        if self._relay.places.locate(hop) is None:
            return 0.0
        return math.inf if waits(hop) else DETOUR_AFTER

    async def _open(self, hop: Hop) -> PeerChannel:
        address = self._relay.places.locate(hop)
        if address is None:
            raise TransportError("a next hop is in no roster any more")
        if self._relay.places.is_listed(hop):
            return await self._connector.named(self._us, key_of(hop), address, decode_from_relay)
        return await self._connector.named(self._us, key_of(hop), address, decode_to_child)
