"""A stranger's host signs an address out of reach of a relay's transport, to end it at each start.

The same address in a relay's descriptor, told by one directory to the others, would end these.
"""

from __future__ import annotations

import os

import pytest
import trio
from small_network import ONE, small_network, until

from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.frames import ParcelAnswer, ParcelFrame
from hushcast_protocol.overlay.host_cards import make_host_card
from hushcast_protocol.overlay.leases import Install, ToHost
from hushcast_protocol.overlay.parcels import Parcel, seal_parcel
from hushcast_runtime.transports.memory import MemoryTransport
from hushcast_runtime.transports.tcp import TcpTransport

BOX = Seed(bytes([7]) * 32)


@pytest.fixture
def foreign_by_tcp(monkeypatch: pytest.MonkeyPatch) -> list[Address]:
    """Have whatever is no address in memory dialled by the `tcp` transport; what was is in the list."""
    near, dialled = MemoryTransport.connect, list[Address]()

    async def connect(
        self: MemoryTransport, address: Address, isolation: str, ahead: bytes = b""
    ) -> trio.abc.Stream:
        if address.endswith(".memory:1"):
            return await near(self, address, isolation, ahead)
        dialled.append(address)
        return await TcpTransport().connect(address, isolation, ahead)

    monkeypatch.setattr(MemoryTransport, "connect", connect)
    return dialled


async def test_an_address_out_of_reach_ends_nobody(foreign_by_tcp: list[Address]) -> None:
    async with small_network(relays=2, clients=1, epoch=36000, origins=1) as net:
        relay = net.relays[0]
        assert relay.identity is not None
        day, lease = net.calendar.day(net.now), os.urandom(16)
        address = onion_address(BOX.public())
        hop = ToHost(make_host_card(BOX, BOX, address))
        install = Install(lease, day, hop, (os.urandom(16),), os.urandom(16), os.urandom(16))
        epoch = net.calendar.epoch(net.now)
        parcel = Parcel(net.net.id, relay.id, epoch, install, 0, (), os.urandom(16))
        channel = await net.knock(relay)
        sealed = seal_parcel(parcel, relay.identity.parcel_key.public(), os.urandom)
        await channel.send(ParcelFrame(0, sealed, None))
        answer = await channel.one(60)
        assert isinstance(answer, ParcelAnswer)
        assert answer.refused is None
        await until(lambda: foreign_by_tcp)
        before = len(foreign_by_tcp)
        await relay.restart()
        await until(lambda: len(foreign_by_tcp) > before)
        ear = await net.clients[0].listen(ONE)
        await net.drop_at(relay, ONE, Content(b"still there"))
        await ear.hears(1)
