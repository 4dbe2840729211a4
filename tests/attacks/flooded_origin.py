"""An origin that strangers drop messages at, and install leases at, as often as they like."""

from __future__ import annotations

import os
from dataclasses import dataclass

import trio
from owner_end import OwnerEnd, card_of, message
from small_network import Node, SmallNetwork

from hushcast_node.relay_role import RelayRole
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.leases import Install, ToHost, ToRelay, lease_mark
from hushcast_protocol.overlay.parcels import Parcel, seal_parcel

LONG = 4 * 3600  # seconds of an epoch, so long that no tree is mended during a test
HONEST, HIS = b"h" * 16, b"s" * 16  # trunks


@dataclass
class FloodedOrigin:
    """An origin that is flooded, and a host at which an owner may hold the honest topic, and nobody his."""

    net: SmallNetwork
    origin: Node
    host: Node

    @property
    def relay(self) -> RelayRole:
        """The origin's part in the overlay."""
        assert self.origin.daemon.overlay.relay is not None
        return self.origin.daemon.overlay.relay

    @property
    def waiting(self) -> int:
        """How many drops are on the disk of the origin."""
        return len(self.relay.drops._intake._sizes)

    async def drop(self, trunk: bytes) -> Message:
        dropped = message(self.net.calendar.day(self.net.now), trunk)
        assert await self.relay.drops.take(dropped) == Receipt("accepted")
        return dropped

    def lease(self, trunk: bytes, hop: ToHost | ToRelay | None = None) -> Install:
        """A lease that leads there, or to the host."""
        day, mark = self.net.calendar.day(self.net.now), lease_mark(trunk, self.origin.id)
        elements = (element(self.net.profile, trunk, self.origin.id, ORIGIN),)
        hop = hop or ToHost(card_of(self.host))
        return Install(os.urandom(16), day, hop, elements, mark, os.urandom(16))

    async def install(self, install: Install) -> None:
        assert self.origin.identity is not None
        epoch = self.net.calendar.epoch(self.net.now)
        parcel = Parcel(self.net.net.id, self.origin.id, epoch, install, 20, (), os.urandom(16))
        sealed = seal_parcel(parcel, self.origin.identity.parcel_key.public(), os.urandom)
        answer = await self.relay.parcels.take(sealed, ORIGIN)
        assert answer.refused is None

    async def flood(self, a_second: float, seconds: float, trunk: bytes = HIS) -> None:
        """Drop `HIS`, and install leases of a trunk, as often."""
        for _ in range(round(seconds * a_second)):
            await self.drop(HIS)
            await self.install(self.lease(trunk))
            await trio.sleep(1 / a_second)


def with_an_owner(net: SmallNetwork) -> tuple[FloodedOrigin, OwnerEnd]:
    origin, host = net.relays
    owner = OwnerEnd(net, host)
    return FloodedOrigin(net, origin, host), owner
