"""Owners: takes what they ask for over the links that their boxes' keys opened, at a stranger's price."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import trio

from hushcast_overlay.relay.admission_control import AdmissionControl, counted_refusal
from hushcast_overlay.relay.boxes.box_links import BoxLinks, OwnerLink
from hushcast_overlay.relay.boxes.kept_boxes import KeptBoxes
from hushcast_overlay.relay.strangers import Strangers
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base import observations
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWorkCheck
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.box_frames import (
    Forget,
    Hold,
    HoldAnswer,
    Seek,
    SoughtTrunk,
    box_lease,
    check_sought,
    held_out,
    hold_price,
)
from hushcast_protocol.overlay.frame_directions import FromOwner
from hushcast_protocol.overlay.frames import Ack, ParcelFrame
from hushcast_protocol.overlay.leases import Lease
from hushcast_runtime.context import Context
from hushcast_runtime.transports.channel import Channel

FIRST_HOLD_WITHIN = 60.0  # seconds in which a key for which nothing is held makes its box

Held = Callable[[Lease], None]
"""Hears of each lease that is held from now on."""
Sought = Callable[[Iterable[SoughtTrunk]], None]
"""Hears of the trunks that were not sought for a box before."""


class OwnerRequests:
    """What owners ask of one relay, but for parcels."""

    def __init__(
        self,
        relay: RelayId,
        shards: Shards,
        boxes: KeptBoxes,
        admission: AdmissionControl,
        held: Held,
        sought: Sought,
        context: Context,
    ) -> None:
        self._relay = relay
        self._shards = shards
        self._boxes = boxes
        self._admission = admission
        self._held = held
        self._sought = sought
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._stamps = ProofOfWorkCheck(relay)

    async def hold(self, box: bytes, frame: Hold) -> HoldAnswer:
        """Have elements lead to a box, durably; made with the first of them."""

        async def hold() -> None:
            lease = await self._boxes.hold(box, box_lease(box, frame), self._is_paid(frame))
            assert lease is not None
            self._held(lease)
            self._tracer.observe(
                observations.Installed(lease.id, lease.mark, lease.day, box, None, len(lease.elements), 0)
            )

        return await self._admitted(frame, hold)

    async def seek(self, box: bytes, frame: Seek) -> HoldAnswer:
        """Have keepers asked for what a box lacks, durably."""

        async def seek() -> None:
            check_sought(frame, self._shards.calendar.day(self._env.now()))
            self._sought(await self._boxes.seek(box, frame.trunks, self._is_paid(frame)))

        return await self._admitted(frame, seek)

    async def _admitted(self, frame: Hold | Seek, carry_out: Callable[[], Awaitable[None]]) -> HoldAnswer:
        if (refused := self._admission.refusal(frame)) is not None:
            self._counters.add(f"refused_{refused}")
            return HoldAnswer(frame.number, refused)
        try:
            await carry_out()
        except PeerError:
            self._counters.add("refused_form")
            return HoldAnswer(frame.number, "form")
        except Refusal as refusal:
            return HoldAnswer(frame.number, counted_refusal(refusal, self._counters))
        return HoldAnswer(frame.number, None)

    async def forget(self, box: bytes, frame: Forget) -> HoldAnswer:
        """Be done with a box."""
        await self._boxes.close(box)
        return HoldAnswer(frame.number, None)

    def _is_paid(self, frame: Hold | Seek) -> bool:
        asked = hold_price(frame, self._shards.least_price(self._relay))
        if frame.stamp is None or not asked:
            return False
        epoch = self._shards.calendar.epoch(self._env.now())
        return self._stamps.spend(frame.stamp, held_out(frame), epoch, asked)


class Owners:
    """The links that boxes' keys open to one relay."""

    def __init__(
        self,
        boxes: KeptBoxes,
        links: BoxLinks,
        requests: OwnerRequests,
        strangers: Strangers,
        context: Context,
    ) -> None:
        self._boxes = boxes
        self._links = links
        self._requests = requests
        self._strangers = strangers
        self._spawn = context.spawn

    async def serve(self, channel: Channel[FromOwner]) -> None:
        """Take part in a link until it ends; raises a `PeerError` or `TransportError`."""
        assert channel.peer is not None
        box = channel.peer
        link = self._links.begin(box, channel)
        try:
            with link.writer.scope:
                if box not in self._boxes:
                    with self._strangers.place(FIRST_HOLD_WITHIN):
                        while box not in self._boxes:
                            if not await self._take(link, await channel.receive()):
                                return
                # No name is given to what came: it would be kept until more comes.
                while await self._take_for_box(link, await channel.receive()):
                    pass
        finally:
            self._links.end(link)

    async def _take_for_box(self, link: OwnerLink, batch: list[FromOwner]) -> bool:
        """Take what came, unless the box was forgotten: whoever makes it anew needs a stranger's place.

        Over the next link its owner hears, too, that it counts from 0 again.
        """
        return link.box in self._boxes and await self._take(link, batch)

    async def _take(self, link: OwnerLink, batch: list[FromOwner]) -> bool:
        """Take what came, one after the other; return whether anything did."""
        self._links.heard(link)
        for frame in batch:
            if isinstance(frame, Ack):
                if frame.unrouted:
                    raise DecodeError("an owner routes nothing, and says that something leads nowhere")
                self._links.acknowledged(link, frame.number)
                continue
            link.begin_request()
            if isinstance(frame, ParcelFrame):
                self._spawn(self._pass_on, link, frame, link.begin_parcel())
            elif isinstance(frame, Hold):
                link.answer(await self._requests.hold(link.box, frame))
            elif isinstance(frame, Seek):
                link.answer(await self._requests.seek(link.box, frame))
            else:
                link.answer(await self._requests.forget(link.box, frame))
        return bool(batch)

    async def _pass_on(self, link: OwnerLink, frame: ParcelFrame, scope: trio.CancelScope) -> None:
        answering = self._strangers.answer(frame)
        del frame
        try:
            with scope:
                link.answer(await answering)
        finally:
            link.parcels.discard(scope)
