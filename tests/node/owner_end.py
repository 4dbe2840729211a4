"""The owner of a box, as a test plays it: its link, what it holds and hears; and trees to its host."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import trio
from small_network import Node, SmallNetwork, until

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.box_frames import (
    BoxStanding,
    Forget,
    Hold,
    HoldAnswer,
    MessageCopy,
    Seek,
    SoughtTrunk,
    TopCopies,
)
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frame_directions import ToOwner, decode_to_owner
from hushcast_protocol.overlay.frames import Ack, Drop, Forward, ParcelAnswer, Ping, Receipt, RefusalReason
from hushcast_protocol.overlay.hops import box_hop
from hushcast_protocol.overlay.host_cards import HostCard, check_host_card
from hushcast_protocol.overlay.leases import Install, ToHost, lease_mark
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

BODY = 1167  # bytes of the smallest body
TRUNK = b"t" * 16


def message(day: int, trunk: bytes = TRUNK, size: int = BODY) -> Message:
    """A message that relays take; nobody can open it."""
    body = os.urandom(size)
    return Message(message_id(day, body), day, (trunk,), bytes(TRAIL_SIZE), body)


def card_of(host: Node) -> HostCard:
    """The card of a relay that is up."""
    assert host.daemon.overlay.relay is not None
    card = host.daemon.overlay.relay.host_word.standing((), 0).card
    assert check_host_card(card)[0] == host.id
    return card


async def leads_to(net: SmallNetwork, top: Node, host: Node, *children: Node, trunk: bytes = TRUNK) -> None:
    """Have a top relay hold a lease by which messages from publishers and children go to a host."""
    assert top.daemon.overlay.relay is not None
    previous = (ORIGIN, *(child.id for child in children))
    elements = tuple(element(net.profile, trunk, top.id, one) for one in previous)
    day, mark = net.calendar.day(net.now), lease_mark(trunk, top.id)
    install = Install(os.urandom(16), day, ToHost(card_of(host)), elements, mark, os.urandom(16))
    await top.daemon.overlay.relay.leases.install(install, paid=True)


async def drop(net: SmallNetwork, origin: Node, *messages: Message) -> None:
    """Publish at an origin."""
    for one in messages:
        channel = await net.knock(origin)
        await channel.send(Drop(one, None))
        assert await channel.one(60) == Receipt("accepted")
        await channel.aclose()


@dataclass
class OwnerEnd:
    """An owner and its link; `acknowledges` at once unless told otherwise."""

    net: SmallNetwork
    host: Node
    seed: Seed = field(default_factory=lambda: Seed(os.urandom(32)))
    acknowledges: bool = True
    heard: list[Message] = field(default_factory=list)
    standings: list[BoxStanding] = field(default_factory=list)
    answers: list[HoldAnswer | ParcelAnswer] = field(default_factory=list)
    copies: list[MessageCopy] = field(default_factory=list)
    parts_of_copies: int = 0
    pings: int = 0
    links_ended: int = 0
    _channel: Channel[ToOwner] | None = None
    _on_link: int = 0

    @property
    def box(self) -> bytes:
        return self.seed.public()

    async def attach(self) -> BoxStanding:
        """Open a link; return what the host says first."""
        channel: Channel[Any] = await self.net.knock(self.host, self.seed)
        self._channel = channel.speaking(decode_to_owner)
        self._on_link = 0
        self.net.nursery.start_soon(self._read, self._channel)
        count = len(self.standings)
        await until(lambda: len(self.standings) > count, 10, "the box's standing is told")
        return self.standings[-1]

    async def _read(self, channel: Channel[ToOwner]) -> None:
        is_first = True
        try:
            while batch := await channel.receive():
                for frame in batch:
                    assert isinstance(frame, BoxStanding) == is_first
                    is_first = False
                    await self._take(channel, frame)
        except TransportError:
            pass
        finally:
            self.links_ended += 1
            await channel.aclose()

    async def _take(self, channel: Channel[ToOwner], frame: ToOwner) -> None:
        if isinstance(frame, BoxStanding):
            self.standings.append(frame)
        elif isinstance(frame, Forward):
            self.heard.append(frame.message)
            self._on_link += 1
        elif isinstance(frame, HoldAnswer | ParcelAnswer):
            self.answers.append(frame)
        elif isinstance(frame, TopCopies):
            self.copies += frame.copies
            self.parts_of_copies += not frame.is_whole
        else:
            assert isinstance(frame, Ping)
            self.pings += 1
        if self.acknowledges and isinstance(frame, Forward | Ping):
            await channel.send(Ack(self._on_link, ()))

    async def say(self, *frames: Wire) -> None:
        assert self._channel is not None
        await self._channel.send(*frames)

    async def detach(self) -> None:
        assert self._channel is not None
        await self._channel.aclose()
        await trio.sleep(1)

    async def acknowledge(self, number: int) -> None:
        await self.say(Ack(number, ()))

    async def ask(self, frame: Hold | Seek | Forget) -> RefusalReason | None:
        count = len(self.answers)
        await self.say(frame)
        await until(lambda: len(self.answers) > count, 30, "an answer")
        answer = self.answers[-1]
        assert isinstance(answer, HoldAnswer)
        assert answer.number == frame.number
        return answer.refused

    def hold_of(
        self, *previous: Node, trunk: bytes = TRUNK, lease: bytes | None = None, day: int | None = None
    ) -> Hold:
        """A hold by which messages from publishers and these relays lead to the box."""
        day = self.net.calendar.day(self.net.now) if day is None else day
        come = (ORIGIN, *(one.id for one in previous))
        elements = tuple(element(self.net.profile, trunk, self.host.id, one) for one in come)
        children = tuple(one.id for one in previous)
        return Hold(len(self.answers) + 1, lease or os.urandom(16), day, elements, children, None)

    async def hold(self, *previous: Node, **others: Any) -> bytes:
        """Hold, as it must succeed; return the lease id."""
        frame = self.hold_of(*previous, **others)
        assert await self.ask(frame) is None
        return frame.lease

    async def seek(self, *days: int, trunk: bytes = TRUNK, is_whole: bool = False) -> RefusalReason | None:
        """Leave a trunk for these days, or today; return why not."""
        trunks = [SoughtTrunk(day, trunk, is_whole) for day in days or (self.net.calendar.day(self.net.now),)]
        return await self.ask(Seek(len(self.answers) + 1, tuple(trunks), None))

    async def forget(self) -> None:
        assert await self.ask(Forget(len(self.answers) + 1)) is None

    async def hears(self, *messages: Message, within: float = 120.0) -> None:
        """Wait until these were heard."""
        wanted = {one.id for one in messages}
        await until(lambda: wanted <= self.ids, within, f"{len(wanted)} heard, but {len(self.heard)}")

    @property
    def ids(self) -> set[bytes]:
        return {one.id for one in self.heard}

    def waiting(self) -> int:
        """How many bytes wait in the box at its host."""
        assert self.host.daemon.overlay.relay is not None
        return self.host.daemon.overlay.relay.boxes._shares.size_of(self.box)

    async def spooled(self) -> list[Message]:
        """What the host's spool holds for the box."""
        assert self.host.daemon.overlay.relay is not None
        spool = self.host.daemon.overlay.relay.peers._spool
        return [item.message for item in await spool.waiting(box_hop(self.box), size=2**40)]
