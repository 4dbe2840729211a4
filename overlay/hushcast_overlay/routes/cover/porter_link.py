"""The link to a daemon's porter: one lasting connection that does not name it, for all that it does."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import trio

from hushcast_overlay.connector import Connector
from hushcast_protocol.base.crypto.proof_of_work import NEAR, ProofOfWork
from hushcast_protocol.base.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.cover.cover_frames import (
    PLACE_DIFFICULTY,
    CoverBills,
    CoverBlocks,
    CoverLetters,
    CoverPlace,
    CoverPlaced,
    placed_in,
)
from hushcast_protocol.cover.letters import LetterRelays
from hushcast_protocol.overlay.frame_directions import ToCovered, decode_to_covered
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

_REFUSALS = {
    "cover": "it takes no letters",
    "list": "it does not know the second that was drawn",
    "quota": "it has no place",
    "stamp": "it does not know this daemon, and asks for a stamp",
}


class PorterLink:
    """The link of one daemon, open or not."""

    def __init__(self, connector: Connector, context: Context) -> None:
        self._connector = connector
        self._spawn = context.spawn
        self._channel: Channel[ToCovered] | None = None
        self._is_asked = False  # for a stamp, when this was opened last
        self._stamp: ProofOfWork | None = None
        self._stamp_for = b""  # what the stamp is made for, or is being made for
        self._has_stamp = trio.Event()

    @property
    def is_open(self) -> bool:
        """Whether letters can be handed in."""
        return self._channel is not None

    async def open(self, relays: LetterRelays, place: bytes, is_new: bool) -> int:
        """Open it, and ask for the place; return the first round whose letters are passed.

        A stamp is made for a place that is new, or that the porter has forgotten: about one a quarter. It may
        take longer than a round leaves, and is ready in a later one then.
        Raises `Refusal` where the porter has none for this daemon, `TransportError` or a `PeerError`.
        """
        porter, waybill = relays.porter, relays.waybill
        asked = CoverPlace(place, relays.second.id, waybill.sealed, None)
        if is_new or self._is_asked:
            asked = msgspec.structs.replace(asked, stamp=await self._stamp_of(porter, placed_in(asked)))
        channel = await self._connector.unnamed(porter.id, porter.address, decode_to_covered)
        try:
            await channel.send(asked)
            placed = await channel.one(self._connector.manner.receipt_within)
            if not isinstance(placed, CoverPlaced):
                raise DecodeError("a porter did not answer the question for a place")
            self._is_asked = placed.refused == "stamp"
            if self._is_asked:
                self._stamp_for = b""  # this one was spent, or is no good
            if placed.refused is not None:
                raise Refusal(_REFUSALS[placed.refused])
        except BaseException:
            await channel.aclose()
            raise
        self._channel = channel
        return placed.begins

    async def _stamp_of(self, porter: Relay, asked: bytes) -> ProofOfWork:
        """Return the stamp for what is asked, once it is made; who is cancelled here asks again for it."""
        about = porter.id + asked
        is_old = self._stamp is not None and abs(self._stamp.epoch - self._connector.epoch) > NEAR
        if about != self._stamp_for or is_old:
            self._stamp, self._stamp_for, self._has_stamp = None, about, trio.Event()
            self._spawn(self._make_stamp, porter, asked, self._has_stamp)
        await self._has_stamp.wait()
        assert self._stamp is not None
        return self._stamp

    async def _make_stamp(self, porter: Relay, asked: bytes, is_made: trio.Event) -> None:
        stamp = await self._connector.mint(porter, asked, PLACE_DIFFICULTY)
        if is_made is self._has_stamp:
            self._stamp = stamp
            is_made.set()

    async def hand_in(self, letters: CoverLetters, bills: CoverBills | None) -> None:
        """Hand in the letters of a round, and the bills where they are due; raise `TransportError`."""
        if self._channel is None:
            raise TransportError("there is no link to the porter")
        await self._channel.send(*([letters] if bills is None else [letters, bills]))

    async def listen(self, take: Callable[[CoverBlocks], None]) -> None:
        """Take blocks as they come, until the link ends; `take` raises a `PeerError` to end it."""
        channel = self._channel
        try:
            while channel is not None and (frames := await channel.receive()):
                for frame in frames:
                    if not isinstance(frame, CoverBlocks):
                        raise DecodeError("a porter said what nobody asked for")
                    take(frame)
        except (TransportError, PeerError):
            pass  # it is opened again before the next round
        finally:
            if channel is self._channel:
                await self.close()

    async def close(self) -> None:
        """Close it at once."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.aclose()
