"""The connector: opens and accepts links, comparing rosters before anything else is said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec
import trio

from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork, mint
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.link.links import HandshakeDone, Link
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.base.versions.translations import Translation
from hushcast_protocol.base.wire import PublicKey, RelayId, Wire
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Drop, ParcelFrame, handed_in
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.other_wires import OtherWires
from hushcast_runtime.transports.base import TooLate, Transport, TransportError
from hushcast_runtime.transports.channel import Channel, accept_channel, open_channel
from hushcast_runtime.transports.drawn_answers import DrawnAnswers
from hushcast_runtime.transports.turns import Turns

FrameT = TypeVar("FrameT")

Claim = Callable[[], Awaitable[Channel[FrameT] | None]]
"""Returns a link that is open already, if there is one; it is closed by whoever asked for it."""


class Connector:
    """Links of one daemon; every method raises `TransportError` or a `PeerError`.

    `decode` says what the other end may say (`hushcast_protocol.overlay.frame_directions`).

    Only a relay under its own name shows its roster. Whoever stays anonymous compares and shows nothing: a
    directory that gave one daemon a roster of its own could else tell that daemon by it.
    """

    def __init__(
        self,
        transport: Transport,
        env: Environment,
        rosters: RosterKeeper,
        is_listed: Callable[[RelayId], bool],
        counters: Counters,
    ) -> None:
        """`is_listed` tells whether a peer is a relay that this daemon has to do with under its name."""
        self._transport = transport
        self._env = env
        self._rosters = rosters
        self._is_listed = is_listed
        self._counters = counters
        self._network = rosters.network.id
        self._minting = FewAtOnce()
        self.turns = Turns()
        """Of all who come, for their handshakes, and of strangers, for their first frames."""
        self.contact = Contact(env.elapsed)
        """Whether relays answer."""
        self.other_wires = OtherWires(env.elapsed, counters)
        """Whom this daemon met and cannot talk to."""

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name."""
        return self.translation.manner

    @property
    def translation(self) -> Translation:
        """What the wire that the network speaks says otherwise than the newest."""
        return self._rosters.translation

    async def named(
        self, us: Seed, peer: PublicKey, address: Address, decode: Callable[[bytes], FrameT]
    ) -> Channel[FrameT]:
        """Open a link as the relay `us` to a relay."""
        return await self._open(peer, address, us, decode)

    async def owner(
        self, box: Seed, host: RelayId, address: Address, decode: Callable[[bytes], FrameT]
    ) -> Channel[FrameT]:
        """Open a link to a host under a box's key, over a fresh circuit; it shows no view of rosters."""
        return await self._open(host, address, box, decode, is_listed=True, shows_view=False)

    async def drop(
        self,
        relay: Relay,
        frame: Drop | ParcelFrame,
        decode: Callable[[bytes], FrameT],
        timeout: float,
        is_drawn: bool = True,
        claim: Claim[FrameT] | None = None,
    ) -> FrameT:
        """Hand one frame to a relay anonymously, over a circuit for it alone; return its answer.

        Where the relay is under load the frame gets the stamp that it asks for, which may take a second.
        `is_drawn` is as in `ask`. `claim` returns an open link to that relay over which nothing was said, if
        there is one; otherwise, and where it breaks before the answer, the relay is dialled.
        """
        if relay.difficulty:
            stamp = await self.mint(relay, handed_in(frame), relay.difficulty)
            frame = msgspec.structs.replace(frame, stamp=stamp)
        with self._noted(is_drawn):
            if claim is not None and (channel := await claim()) is not None:
                try:
                    return await _answer(channel, frame, timeout)
                except TooLate:
                    raise  # another one, which is no slower: this relay has had its time
                except TransportError:
                    pass  # it broke, long before perhaps, and nobody saw it
            channel = await self.unnamed(relay.id, relay.address, decode)
            return await _answer(channel, frame, timeout)

    async def ask(
        self,
        relay: PublicKey,
        address: Address,
        frame: Wire,
        decode: Callable[[bytes], FrameT],
        timeout: float,
        is_drawn: bool = True,
    ) -> FrameT:
        """Say one thing to a listed relay anonymously, over a fresh circuit; return its answer.

        `timeout` are the seconds that the answer may take once the link is open. `is_drawn`: the relay is
        any. That one which is asked until it answers does not tells nothing of the others.
        """
        with self._noted(is_drawn):
            return await _answer(await self.unnamed(relay, address, decode), frame, timeout)

    async def unnamed(
        self, relay: PublicKey, address: Address, decode: Callable[[bytes], FrameT]
    ) -> Channel[FrameT]:
        """Open a link to a listed relay anonymously, over a fresh circuit, for one question alone."""
        return await self._open(relay, address, None, decode, is_listed=True)

    def answers(self) -> DrawnAnswers:
        """Return what says when a host hears that its messages have come."""
        return DrawnAnswers(self._env, self.manner.acknowledges_within)

    @contextmanager
    def _noted(self, is_drawn: bool) -> Iterator[None]:
        """Note whether a relay answered: one that is any, or did."""
        try:
            yield
        except (TransportError, PeerError):
            if is_drawn:
                self.contact.note(worked=False)
            raise
        self.contact.note(worked=True)

    @property
    def epoch(self) -> int:
        """The running epoch, which stamps are made for."""
        return self._rosters.calendar.epoch(self._env.now())

    async def mint(self, relay: Relay, content: bytes, bits: int) -> ProofOfWork:
        """Make a stamp of so many bits for what is handed in to a relay, by its digest."""
        epoch = self.epoch
        async with self._minting:  # one after the other: they would only take the interpreter from each other
            return await self._env.compute(mint, relay.id, epoch, content, bits, self._env.randomness)

    async def accept(
        self, stream: trio.abc.Stream, us: Seed, decode: Callable[[bytes], FrameT]
    ) -> Channel[FrameT]:
        """Take a link as the relay `us`."""
        view = self._rosters.view()
        link = Link.respond(
            self._network, us, self._env.randomness, MAX_OVERLAY_FRAME, view, speaks=wires.spoken()
        )
        return await self._checked(accept_channel(stream, link, decode, self.turns.take))

    async def _open(
        self,
        peer: PublicKey,
        address: Address,
        us: Seed | None,
        decode: Callable[[bytes], FrameT],
        is_listed: bool = False,
        shows_view: bool = True,
    ) -> Channel[FrameT]:
        wire = self._rosters.spoken()  # or relays would be dialled in vain, for as long as this runs
        view = self._rosters.view() if us and shows_view else None
        link = Link.initiate(self._network, peer, self._env.randomness, MAX_OVERLAY_FRAME, us, view, wire)
        isolation = self._env.isolation()
        opening = open_channel(self._transport, address, isolation, link, decode)
        return await self._checked(opening, is_listed=is_listed)

    async def _checked(
        self,
        handshake: Awaitable[tuple[Channel[FrameT], HandshakeDone]],
        is_listed: bool = False,
    ) -> Channel[FrameT]:
        """Return the channel of a handshake; `is_listed` where whoever dialled has the peer from a roster."""
        try:
            channel, established = await handshake
        except (PeerError, TransportError) as error:
            self._counters.add("links_failed")
            self.other_wires.note(error)
            raise
        try:
            self._compare(established, is_listed)
        except PeerError:
            await channel.aclose()
            raise
        self._counters.add("links_opened")
        return channel

    def _compare(self, established: HandshakeDone, is_listed: bool) -> None:
        """Compare a view if a listed relay stands for it: strangers could make any number of them up."""
        peer = established.peer
        if is_listed or (peer is not None and self._is_listed(peer)):
            self._rosters.compare(established.view)
        elif established.view is not None:
            self._counters.add("views_passed_over")


async def _answer(channel: Channel[FrameT], frame: Wire, timeout: float) -> FrameT:
    """Say one thing over a link, and close it; return the answer, or raise as the link's methods do."""
    try:
        await channel.send(frame)
        return await channel.one(timeout)
    finally:
        await channel.aclose()
