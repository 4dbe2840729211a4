"""What comes over links: while nothing comes a link has no task, which would take half of its memory.

What has come is read by one task for all links: for signs of life, acknowledgements and answers that is all.
Messages may have to wait, for room or for the disk. So a task takes them, and whatever comes meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING

import trio

from hushcast_overlay.relay.acknowledgements import Acknowledgements
from hushcast_overlay.relay.own_relay import OwnRelay
from hushcast_overlay.relay.session import Session
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.hop_values import HopActions
from hushcast_protocol.overlay.frame_directions import BetweenCover, FromRelay
from hushcast_protocol.overlay.frames import Ack, Forward, ParcelAnswer, ParcelFrame, Ping
from hushcast_protocol.overlay.hops import is_host, is_keeper, key_of
from hushcast_protocol.overlay.keeper_frames import HandIn
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.spool import SpooledMessage
from hushcast_runtime.transports.base import TransportError

if TYPE_CHECKING:
    from hushcast_overlay.relay.peers import Peer

_CARRIERS = Forward, HandIn  # a tuple: a union is made anew for each frame that is looked at
_AT_ONCE = 16  # frames taken in one turn, beside those of other links; a task takes the others
_SETTLED_AT_ONCE = 512  # messages that wait to be acknowledged; a full window takes 4 ms, beside others'
_Carried = Sequence[Forward | HandIn]


class LinkReader:
    """Takes what comes over the links of one relay."""

    def __init__(
        self,
        relay: OwnRelay,
        do: Callable[[Peer, HopActions[Session, SpooledMessage]], None],
        heard: Callable[[Session], None],
        over: Callable[[Session], None],
        acknowledgements: Acknowledgements,
        reroutes: bool,
        context: Context,
    ) -> None:
        """`heard` is told when all that a link brought was taken, and `over` once when it has ended.

        `reroutes` tells whether the other end hears which messages lead nowhere here.
        """
        self._relay = relay
        self._do = do
        self._heard = heard
        self._over = over
        self._acknowledgements = acknowledgements
        self._reroutes = reroutes
        self._now = context.env.elapsed
        self._counters = context.counters
        self._spawn = context.spawn
        self._reads, self._look = self._in_context, self._stirred  # one of each for all links
        self._daemons = copy_context()  # whoever stirs a link is another one

    def begin(self, peer: Peer, link: Session) -> None:
        """Take what comes over a link, until it ends."""
        link.peer, link.attend = peer, self._reads
        try:
            rests = link.channel.rests(link.stir)
        except TransportError:
            rests = False  # whoever attends to it hears of it
        if not rests:
            self._spawn(self._attend, link, ())

    def _in_context(self, link: Session) -> None:
        self._daemons.run(self._look, link)

    def _stirred(self, link: Session) -> None:
        try:
            if len(link.unacknowledged) > _SETTLED_AT_ONCE and not link.is_over:
                self._spawn(self._attend, link, ())
                return
            batch = link.channel.receive_at_once(_AT_ONCE)
            carried = () if batch is None else self._take(link, batch)
            if carried is None:
                self._end(link)
            elif carried or not link.channel.rests(link.stir):
                self._spawn(self._attend, link, carried)
        except Exception as error:
            self._note(link, error)
            self._end(link)

    async def _attend(self, link: Session, carried: _Carried | None) -> None:
        """Take messages, and what comes meanwhile."""
        rests = False
        try:
            while carried is not None:
                if carried:
                    await self._take_messages(link, carried)
                    carried = ()  # nothing is kept of what came until more comes
                if rests := link.channel.rests(link.stir):
                    return
                carried = self._take(link, await link.channel.receive())
        except Exception as error:
            self._note(link, error)
        finally:
            if not rests:
                self._end(link)
                await link.channel.aclose()

    def _end(self, link: Session) -> None:
        link.end()
        self._over(link)
        link.channel.close()

    def _note(self, link: Session, error: Exception) -> None:
        if isinstance(error, PeerError):
            self._counters.add("refused_form")
            log.debug("a link was closed", reason=str(error))
        elif isinstance(error, TransportError):
            self._counters.add("links_failed", int(not link.is_over))  # or it was given up
            log.debug("a link broke", reason=str(error))
        else:
            self._counters.add("internal_errors")
            log.error("a link met an error of this program", exc_info=error)

    async def _take_messages(self, link: Session, carried: _Carried) -> None:
        size = sum([len(frame.message.body) for frame in carried])
        with link.taking():
            unrouted = await self._take_over(carried, key_of(link.peer.hop))
            await self._acknowledgements.take_over(link, len(carried), size, unrouted)
        if not link.is_over:
            self._heard(link)

    def _take(self, link: Session, batch: Sequence[FromRelay]) -> _Carried | None:
        """Take what has to wait for nothing, and return the rest; `None` where nothing more is to be read."""
        if not batch or link.is_over:
            return None
        peer = link.peer
        carried = [frame for frame in batch if isinstance(frame, _CARRIERS)]
        for frame in batch if len(carried) < len(batch) else ():
            if isinstance(frame, Ack):
                if frame.unrouted and is_host(peer.hop):  # it has no such box: it lost its disk
                    self._counters.add("messages_without_box", len(frame.unrouted))
                if frame.unrouted and is_keeper(peer.hop):  # it draws others, or its clock is another one
                    self._counters.add("hand_ins_refused", len(frame.unrouted))
                self._do(peer, peer.acknowledged(link, frame.number, frame.unrouted, self._now()))
            elif isinstance(frame, Ping):
                link.owe()
                link.flush()
            elif isinstance(frame, ParcelFrame):
                self._spawn(self._answer, link, frame, link.begin_parcel())
            elif isinstance(frame, ParcelAnswer):
                link.answered(frame)
            elif isinstance(frame, BetweenCover):
                self._relay.take_cover(frame, key_of(link.peer.hop))
        if link.is_over and not carried:
            return None
        if not carried:
            self._heard(link)
        return carried

    async def _take_over(self, carried: _Carried, previous: bytes) -> list[int]:
        """Take over what a link carried; return the places of what leads nowhere here, or is not kept."""
        nowhere: list[int] = []
        for carrier, take in (Forward, self._relay.take_forwards), (HandIn, self._relay.take_hand_ins):
            places = [place for place, frame in enumerate(carried) if type(frame) is carrier]
            if places:
                unrouted = await take([carried[place].message for place in places], previous)
                if carrier is HandIn or self._reroutes:
                    nowhere += [places[one] for one in unrouted]
        return sorted(nowhere)

    async def _answer(self, link: Session, frame: ParcelFrame, scope: trio.CancelScope) -> None:
        number, taking = frame.number, self._relay.take_parcel(frame.sealed, key_of(link.peer.hop))
        del frame
        try:
            with scope:
                answer = await taking
                link.post(ParcelAnswer(number, answer.refused, answer.confirmations))
        finally:
            link.end_parcel(scope)
