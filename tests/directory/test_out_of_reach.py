"""An authority tells of a relay at an address that others cannot reach: they do not list it, and live."""

from __future__ import annotations

import pytest
import trio
from authority_bench import authority_bench
from directory_bench import EPOCH, NETWORK, parcel_key, relay_seed

from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.roster import Descriptor, sign_descriptor
from hushcast_runtime.transports.memory import MemoryTransport
from hushcast_runtime.transports.tcp import TcpTransport

STRANGE = 77  # the relay's number


async def test_an_address_out_of_reach_ends_no_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    near, dialled = MemoryTransport.connect, list[Address]()

    async def connect(
        self: MemoryTransport, address: Address, isolation: str, ahead: bytes = b""
    ) -> trio.abc.Stream:
        if address.endswith(".memory:1"):
            return await near(self, address, isolation, ahead)
        dialled.append(address)
        return await TcpTransport().connect(address, isolation, ahead)

    monkeypatch.setattr(MemoryTransport, "connect", connect)
    async with authority_bench(3, 2) as made:
        await made.until(made.epoch + 1.2)
        seed, now = relay_seed(STRANGE), int(made.now)
        address, key = onion_address(seed.public()), parcel_key(STRANGE).public()
        body = Descriptor(NETWORK.id, seed.public(), address, key, now, now + 3 * EPOCH, 0)
        signed, roll = sign_descriptor(seed, body), made.directories[0].agreeing._roll
        await roll.admit(roll.examine(signed, made.now), signed)
        await made.until(made.epoch + 2.2)
        assert dialled
        assert seed.public() not in made.names_listed()
        assert len(made.heads(made.epoch)) == 1
