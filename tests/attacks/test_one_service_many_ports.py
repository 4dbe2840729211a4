"""A stranger with one onion service has a relay at each of its ports, so that it counts as many."""

from __future__ import annotations

import pytest

from hushcast_directory.server.roll import Roll
from hushcast_protocol.base.addresses import ONION_PORT, onion_address, parse_address, service_of
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.roster import Descriptor, Network, sign_descriptor
from hushcast_runtime.storage.store import MemoryStore

NETWORK = Network("ports", "hardened", 3600)
NOW = 2_000_000_000
RELAYS = 12


async def register(roll: Roll, host: str, ports: range) -> None:
    for port in ports:
        seed = Seed(port.to_bytes(32, "big"))
        descriptor = Descriptor(
            NETWORK.id, seed.public(), f"{host}:{port}", Seed(bytes(32)).public(), NOW, NOW + 7200, 0
        )
        signed = sign_descriptor(seed, descriptor)
        await roll.admit(roll.examine(signed, NOW), signed)


@pytest.mark.parametrize(("is_onion", "relays"), [(True, 1), (False, RELAYS)])
async def test_one_onion_service_is_one_relay(is_onion: bool, relays: int) -> None:
    """A test network has all its relays on one host: there an address is one with its port."""
    onion = onion_address(Seed(b"\7" * 32).public()).removesuffix(f":{ONION_PORT}")
    store = MemoryStore()
    roll = Roll(NETWORK, Seed(bytes(32)), store)
    await register(roll, onion if is_onion else "127.0.0.1", range(7000, 7000 + RELAYS))
    assert roll.count(NOW) == relays
    assert len(roll.ballot(NETWORK.calendar.epoch(NOW) + 1, NOW + 1, False)) == relays
    again = Roll(NETWORK, Seed(bytes(32)), store)
    await again.load()
    assert again.count(NOW) == relays


async def test_an_address_is_written_in_one_way() -> None:
    onion = onion_address(Seed(bytes(32)).public())
    host = onion.removesuffix(f":{ONION_PORT}")
    assert service_of(onion) == service_of(parse_address(f"{host}:1")) == host
    for other in (f"{host.upper()}:1", f"{host}:01", f"x.{host}:1", f"{host}.:1"):
        with pytest.raises(DecodeError):
            parse_address(other)
