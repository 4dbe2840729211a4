"""A host's link: what the owner of a box says to its host, and hears from it, over one circuit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import trio

from hushcast_overlay.connector import Connector
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId, Wire
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.box_frames import (
    BoxStanding,
    Forget,
    Hold,
    HoldAnswer,
    Seek,
    SoughtTrunk,
    TopCopies,
    held_out,
    hold_price,
)
from hushcast_protocol.overlay.frame_directions import ToOwner, decode_to_owner
from hushcast_protocol.overlay.frames import (
    Ack,
    Forward,
    ParcelAnswer,
    ParcelFrame,
    Ping,
    RefusalReason,
    handed_in,
)
from hushcast_protocol.overlay.host_cards import check_host_card
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.channel_writer import Writer

STANDING_WITHIN = 30.0  # seconds from the link to what it says first
ANSWER_WITHIN = 30.0  # seconds to an answer to what is on disk at once

Deliver = Callable[[list[Message]], Awaitable[None]]
"""Takes messages into the inbox; returns once they are durable. Raises a `PeerError` if one is malformed."""
NoteCopies = Callable[[TopCopies], None]
"""Hears by which relays copies came, as the host says."""
AnswerT = TypeVar("AnswerT", HoldAnswer, ParcelAnswer)


def _nobody() -> None:
    """Where nobody waits for a question to be asked."""


class _Awaited:
    """An answer, once it is there; none if the link ended."""

    __slots__ = ("answer", "over")

    def __init__(self) -> None:
        self.over = trio.Event()
        self.answer: HoldAnswer | ParcelAnswer | None = None


class HostLink:
    """An open link to a host, under the box's key."""

    def __init__(
        self,
        relay: RelayId,
        channel: Channel[ToOwner],
        connector: Connector,
        spawn: Callable[..., None],
    ) -> None:
        self.has_told = trio.Event()
        """Set once it has told how the box stands."""
        self._relay = relay
        self._host: Relay | None = None
        self._standing: BoxStanding | None = None
        self.sought: int | None = None
        """The last day for which it has a trunk to ask keepers for; `None` without any."""
        self.brought_at = self.asked_at = trio.current_time()
        """When it brought messages last, and was asked last for days gone by, by trio's clock."""
        self._channel = channel
        self._connector = connector
        self._writer = Writer(channel, spawn)
        self._spawn = spawn
        self._awaited: dict[int, _Awaited] = {}
        self._number = 0
        self._is_over = False
        self._answers = connector.answers()
        self._answering = trio.CancelScope()

    @classmethod
    async def opened(
        cls, box: Seed, host: RelayId, address: Address, connector: Connector, spawn: Callable[..., None]
    ) -> HostLink:
        """Open a link to a host, which has said nothing yet; raise a `TransportError` or `PeerError`."""
        return cls(host, await connector.owner(box, host, address, decode_to_owner), connector, spawn)

    def take_for(self, listed: Relay) -> None:
        """Take the host for what a roster says of it, so that it can be asked before it has told anything."""
        self._host = listed

    async def hear(self) -> None:
        """Hear how the box stands, which a host says first; raise a `TransportError` or `PeerError`.

        Then the link is closed. What was asked for before is answered once there is somebody who `serve`s.
        """
        try:
            standing = await self._channel.one(STANDING_WITHIN)
            if not isinstance(standing, BoxStanding):
                raise DecodeError("a host says something before it says how the box stands")
            relay, says = check_host_card(standing.card)
            if relay != self._relay:
                raise DecodeError("a host shows another one's card")
        except BaseException:
            await self.aclose()
            raise
        self._host = Relay(relay, says, standing.parcel_key, 0, standing.difficulty)
        self._standing, self.sought = standing, standing.sought
        self.has_told.set()

    @property
    def host(self) -> Relay:
        """What it says of itself, whatever rosters say; until it has, what it was taken for."""
        assert self._host is not None
        return self._host

    @property
    def standing(self) -> BoxStanding:
        """What it said first."""
        assert self._standing is not None
        return self._standing

    async def hold(self, hold: Hold, asked: Callable[[], None] = _nobody) -> RefusalReason | None:
        """Have elements lead to the box; return why not. Raises `TransportError` without an answer.

        `asked` is called once the host was: it does so before whatever it is asked for from then on.
        """
        return await self._hold_out(hold, asked)

    async def seek(self, trunks: tuple[SoughtTrunk, ...]) -> RefusalReason | None:
        """Have keepers asked for what the box lacks; return as `hold` does, and raise what it does."""
        return await self._hold_out(Seek(0, trunks, None))

    async def _hold_out(
        self, frame: Hold | Seek, asked: Callable[[], None] = _nobody
    ) -> RefusalReason | None:
        if bits := hold_price(frame, self.host.difficulty):
            stamp = await self._connector.mint(self.host, held_out(frame), bits)
            frame = msgspec.structs.replace(frame, stamp=stamp)
        return (await self._ask(frame, HoldAnswer, ANSWER_WITHIN, asked)).refused

    async def forget(self) -> None:
        """Tell the host that the box is done with; raise `TransportError` without an answer."""
        await self._ask(Forget(0), HoldAnswer, ANSWER_WITHIN)

    async def pass_on(self, sealed: bytes, patience: float) -> ParcelAnswer:
        """Have the host open a parcel, and pass on what it holds; raise `TransportError` without an answer.

        `patience` are the seconds until it has answered.
        """
        frame = ParcelFrame(0, sealed, None)
        if self.host.difficulty:
            stamp = await self._connector.mint(self.host, handed_in(frame), self.host.difficulty)
            frame = msgspec.structs.replace(frame, stamp=stamp)
        return await self._ask(frame, ParcelAnswer, patience)

    async def serve(self, deliver: Deliver, note: NoteCopies) -> None:
        """Take what the host brings, and says, until the link ends; raises a `PeerError` or `TransportError`.

        What `deliver` has taken is acknowledged, and signs of life are answered, at moments that are drawn.
        """
        self._spawn(self._answer)
        try:
            silent_for = self._connector.manner.silent_for
            with self._writer.scope, trio.move_on_after(silent_for) as silent:
                while batch := await self._channel.receive():
                    silent.deadline = trio.current_time() + silent_for
                    messages = [frame.message for frame in batch if isinstance(frame, Forward)]
                    if messages or any(isinstance(frame, Ping) for frame in batch):
                        self._answers.came(len(messages))
                    for frame in batch:
                        if isinstance(frame, TopCopies):
                            note(frame)
                        else:
                            self._hear(frame)
                    if messages:
                        self.brought_at = trio.current_time()
                        await deliver(messages)
                        self._answers.take(len(messages))
                    await self._answers.rest(len(batch))  # the host keeps what is not acknowledged
        finally:
            self._give_up()

    async def _answer(self) -> None:
        with self._answering:
            while True:
                self._writer.post(Ack(await self._answers.next(), ()))

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return not self._is_over

    async def aclose(self) -> None:
        """Close the link at once."""
        self._give_up()
        await self._channel.aclose()

    def _give_up(self) -> None:
        """Wake all who wait for answers that will not come."""
        self._is_over = True
        self._answering.cancel()
        for awaited in self._awaited.values():
            awaited.over.set()

    def end(self) -> None:
        """Have the link end."""
        self._writer.scope.cancel()

    def _hear(self, frame: ToOwner) -> None:
        if isinstance(frame, BoxStanding):
            raise DecodeError("a host says twice on one link how the box stands")
        if not isinstance(frame, HoldAnswer | ParcelAnswer):
            return
        if (awaited := self._awaited.get(frame.number)) is not None:
            awaited.answer = frame
            awaited.over.set()

    async def _ask(
        self,
        frame: Wire,
        answered: type[AnswerT],
        within: float,
        asked: Callable[[], None] = _nobody,
    ) -> AnswerT:
        if self._is_over:
            raise TransportError("the link to the host has ended")
        self._number += 1
        number = self._number
        awaited = self._awaited[number] = _Awaited()
        try:
            self._writer.post(msgspec.structs.replace(frame, number=number))
            asked()
            with trio.move_on_after(within):
                await awaited.over.wait()
        finally:
            del self._awaited[number]
        if not isinstance(awaited.answer, answered):
            raise TransportError("the host gave no answer")
        return awaited.answer
