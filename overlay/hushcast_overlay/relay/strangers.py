"""Strangers: admits and answers the one frame of an unnamed connection: a drop, a parcel or a question.

Who asks for a place under cover stays, and is its porter's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from contextlib import AbstractContextManager, suppress

import trio

from hushcast_overlay.relay.admission_control import AdmissionControl, Declined
from hushcast_overlay.relay.cover.cover_role import CoverRole
from hushcast_overlay.relay.drops import Drops
from hushcast_overlay.relay.keepers.kept_messages import KeptMessages
from hushcast_overlay.relay.parcels import Parcels
from hushcast_overlay.shards.shard_server import ShardServer
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.cover.cover_frames import CoverPlace, CoverPlaced
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frame_directions import FromStranger, decode_from_covered
from hushcast_protocol.overlay.frames import Drop, ParcelAnswer, ParcelFrame, Receipt
from hushcast_protocol.overlay.keeper_frames import (
    AskKept,
    AskKeptMessages,
    KeeperRequest,
    ShownKept,
    ShownKeptMessages,
)
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShardRequest,
    ShownPiece,
    ShownSlice,
)
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.connection_guard import strangers_room
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_ANSWERING = 1024  # drops of unnamed connections that are carried out at once, and as many parcels
# Unnamed connections over which nothing has come yet: 60,000 daemons have half as many ready at each of 500
# relays. One more takes the place of another, whose daemon then dials as if it had had none.
MAX_READY = 1024
READY_WITHIN = 4 * 3600.0  # seconds that one may say nothing: who dialled ends it, after 192 minutes at most
ANONYMOUS_TIMEOUT = 60.0  # seconds from its first byte in which one hands in its frame, up to half a MiB
RECEIPT_WITHIN = 30.0  # seconds in which it must take the answer: who dropped a message waits no longer
MAX_SHOWING = (
    32  # slices, pieces of the guide, what is kept, written at once: 150 kB each, half a MiB at most
)
SHOWN_WITHIN = 60.0  # seconds in which one must be taken: a slice at 2.5 kB/s

Asked = Drop | ParcelFrame | ShardRequest | KeeperRequest
"""What a stranger is answered once."""


class Strangers:
    """The unnamed connections of one relay."""

    def __init__(
        self,
        admission: AdmissionControl,
        drops: Drops,
        parcels: Parcels,
        serving: ShardServer,
        kept: KeptMessages,
        cover: CoverRole,
        context: Context,
    ) -> None:
        env, counters = context.env, context.counters
        self._admission = admission
        self._drops = drops
        self._parcels = parcels
        self._serving = serving
        self._kept = kept
        self._cover = cover
        self._counters = counters
        # Apart, too: whoever opens connections and says nothing takes no place from who hands in.
        self._ready = ConnectionSlots(MAX_READY, env.below, counters.add, "ready_gave_way")
        self._slots = strangers_room(env, counters)
        # Apart: whoever asks for slices takes no place from who drops, and nobody's slice can hold a place.
        self._showing = ConnectionSlots(MAX_SHOWING, env.below, counters.add, "strangers_dropped")
        self._answering: Counter[type] = Counter()  # a parcel takes minutes, and drops do not wait for them

    def place(self, within: float) -> AbstractContextManager[None]:
        """Hold a stranger's place for the block, as `ConnectionSlots.place` does."""
        return self._slots.place(within)

    async def serve(self, channel: Channel[FromStranger]) -> None:
        """Answer one unnamed connection; raises a `PeerError` or `TransportError`.

        It may be ready for an hour before anything is said.
        """
        with self._ready.place(READY_WITHIN):
            if not await channel.stirred():
                return
        with self._slots.place(ANONYMOUS_TIMEOUT):
            frame = await channel.first()
        if isinstance(frame, CoverPlace):
            await self._serve_covered(channel, frame)
            return
        # What was handed in is carried out, whoever comes meanwhile; only its answer may give way again.
        is_parcel, answering = isinstance(frame, ParcelFrame), self.answer(frame)
        del frame  # half a MiB, which nobody needs once it is open
        answer = await (_while_open(channel, answering) if is_parcel else answering)
        is_large = isinstance(answer, ShownSlice | ShownPiece | ShownKept | ShownKeptMessages)
        with self._showing.place(SHOWN_WITHIN) if is_large else self._slots.place(RECEIPT_WITHIN):
            await channel.send(answer)
            await channel.finish()

    async def _serve_covered(self, channel: Channel[FromStranger], frame: CoverPlace) -> None:
        if (refused := self._cover.admit(frame)) is None:
            await self._cover.serve(channel.speaking(decode_from_covered), frame)
            return
        if refused in ("quota", "stamp"):
            self._counters.add(f"refused_{refused}")
        with self._slots.place(RECEIPT_WITHIN):
            await channel.send(CoverPlaced(refused, 0))
            await channel.finish()

    async def answer(self, frame: Asked) -> Wire:
        """Admit a frame, and carry it out; whoever awaits this is not to keep it."""
        kind, answering = type(frame), self._admit(frame)
        del frame
        self._answering[kind] += 1
        try:
            return await answering
        finally:
            self._answering[kind] -= 1

    async def _admit(self, frame: Asked) -> Wire:
        if isinstance(frame, AskLeaf | AskSlice | AskPiece):
            return self._serving.answer(frame)
        if isinstance(frame, AskKept | AskKeptMessages):
            return await self._kept.answer(frame)
        full = self._answering[type(frame)] > MAX_ANSWERING
        refused: Declined | None = "quota" if full else self._admission.refusal(frame)
        if refused is not None:
            self._counters.add(f"refused_{refused}")
        if isinstance(frame, Drop):
            return Receipt(refused) if refused else await self._drops.take(frame.message)
        number = frame.number
        if refused is not None:
            return ParcelAnswer(number, refused, ())
        taking = self._parcels.take(frame.sealed, ORIGIN)
        del frame
        answer = await taking
        return ParcelAnswer(number, answer.refused, answer.confirmations)


async def _while_open(channel: Channel[FromStranger], answering: Awaitable[Wire]) -> Wire:
    """Return an answer; raise `TransportError` as soon as nobody waits for it any more."""
    answers: list[Wire] = []
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            with suppress(PeerError, TransportError):
                await channel.receive()
            nursery.cancel_scope.cancel()  # closed, or somebody who says more than the one thing to be said

        nursery.start_soon(watch)
        answers.append(await answering)
        nursery.cancel_scope.cancel()
    if not answers:
        raise TransportError("the other end left before its parcel was carried out")
    return answers[0]
