"""What has an address asks for the same one after a restart; on `tcp` nothing else would give it back."""

from __future__ import annotations

import trio
from small_network import ONE, small_network

from hushcast_overlay.relay.identity import draw_identity
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.processes.own_address import open_address
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import Listener, Transport
from hushcast_runtime.transports.tcp import TcpTransport

draw = simulated_environment("addresses").randomness


class Asked:
    """A transport that notes which addresses were asked for."""

    def __init__(self) -> None:
        self.previous: list[Address | None] = []

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        self.previous.append(previous)
        return await TcpTransport().listen(seed, previous)

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        raise NotImplementedError


async def test_a_relay_asks_for_the_address_it_had() -> None:
    transport, store, identity = Asked(), MemoryStore(), draw_identity(draw)
    first = await open_address(identity.service, transport, store)
    await first.aclose()
    second = await open_address(identity.service, transport, store)
    await second.aclose()
    assert transport.previous == [None, first.address]
    assert second.address == first.address


async def test_the_directory_asks_for_the_address_it_had() -> None:
    transport: Transport = Asked()
    store, seed = MemoryStore(), Seed.draw(draw)
    first = await open_address(seed, transport, store)
    await first.aclose()
    second = await open_address(seed, transport, store)
    await second.aclose()
    assert transport.previous == [None, first.address]  # type: ignore[attr-defined]


async def test_a_relay_that_restarts_knows_what_passed_it_before() -> None:
    """Its trail label is kept, and recognised beside the fresh one."""
    async with small_network(relays=2) as net:
        node = net.relays[0]
        assert node.daemon.overlay.relay is not None
        before = node.daemon.overlay.relay.forwarding._router._labels[0]
        await node.restart()
        assert node.daemon.overlay.relay is not None
        assert before in node.daemon.overlay.relay.forwarding._router._labels
        await net.clients[0].listen(ONE)
