"""One conformance suite for every transport: what `Transport` and `Listener` promise, whoever keeps it."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from hushcast_protocol.base.addresses import Address, is_of_key, onion_address, parse_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener, StreamHandler, Transport, TransportError
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.memory import MemoryNetwork, MemoryTransport
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_testnet.path_proxy import PathRelay
from hushcast_testnet.tor.private_tor import TorNetwork

DEADLINE = 60.0  # seconds; a first contact over a private Tor network on a busy machine
NO_ANSWER = 4.0  # seconds after which a service counts as gone

Opened = AbstractAsyncContextManager[Transport]


@asynccontextmanager
async def open_memory(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    yield MemoryTransport(MemoryNetwork())


@asynccontextmanager
async def open_tcp(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    yield TcpTransport()


@asynccontextmanager
async def open_path(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    relay = PathRelay(random.Random(1))
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, relay.carry, listeners)
        yield TcpTransport("127.77.3.7", Endpoint("127.0.0.1", listeners[0].socket.getsockname()[1]))
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_tor(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    network: TorNetwork = request.getfixturevalue("tor_network")
    control, socks = network.clients[0].endpoints()
    transport = TorTransport(TorSettings(control=control, socks=socks))
    async with trio.open_nursery() as nursery:
        await nursery.start(transport.run)
        yield transport
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_tor_by_sockets(request: pytest.FixtureRequest) -> AsyncIterator[Transport]:
    network: TorNetwork = request.getfixturevalue("tor_network")
    control, socks = network.clients[0].endpoints()
    with tempfile.TemporaryDirectory(prefix="hush-sockets-") as sockets:
        transport = TorTransport(TorSettings(control=control, socks=socks, services=Path(sockets)))
        async with trio.open_nursery() as nursery:
            await nursery.start(transport.run)
            yield transport
            nursery.cancel_scope.cancel()


@dataclass(frozen=True)
class Kind:
    """A transport under test, and an address of another kind that it must refuse."""

    open: Callable[[pytest.FixtureRequest], Opened]
    foreign: Address


ONION = onion_address(Seed(bytes(32)).public())
LOOPBACK = Address("127.0.0.1:1")

KINDS = [
    pytest.param(Kind(open_memory, LOOPBACK), id="memory"),
    pytest.param(Kind(open_tcp, ONION), id="tcp"),
    pytest.param(Kind(open_path, ONION), id="tcp by a path"),
    pytest.param(Kind(open_tor, LOOPBACK), id="tor", marks=pytest.mark.tor),
    pytest.param(Kind(open_tor_by_sockets, LOOPBACK), id="tor by sockets", marks=pytest.mark.tor),
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    # The network is set up outside of the event loop that the test then runs in.
    kind: Kind = request.param
    if kind.open in (open_tor, open_tor_by_sockets):
        request.getfixturevalue("tor_network")
    return kind


@pytest.fixture
def opened(kind: Kind, request: pytest.FixtureRequest) -> Opened:
    return kind.open(request)


def seed() -> Seed:
    return Seed.draw(os.urandom)


async def echo(stream: trio.abc.Stream) -> None:
    async for data in stream:
        await stream.send_all(data)


async def read_exactly(stream: trio.abc.Stream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        assert piece, "the stream ended early"
        data += piece
    return data


async def read_to_end(stream: trio.abc.Stream) -> bytes:
    data = b""
    while piece := await stream.receive_some():
        data += piece
    return data


@asynccontextmanager
async def serving(listener: Listener, handler: StreamHandler = echo) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, handler)
        with trio.fail_after(DEADLINE):
            await listener.published()
            yield
        await listener.aclose()
        nursery.cancel_scope.cancel()


async def test_bytes_travel_both_ways_in_order(opened: Opened) -> None:
    sent = os.urandom(200_000)
    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener):
            stream = await transport.connect(listener.address, "a")
            async with stream, trio.open_nursery() as nursery:
                nursery.start_soon(stream.send_all, sent)
                assert await read_exactly(stream, len(sent)) == sent


async def test_what_is_said_ahead_comes_first(opened: Opened) -> None:
    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener), await transport.connect(listener.address, "a", b"ahead") as stream:
            await stream.send_all(b" and then")
            assert await read_exactly(stream, 14) == b"ahead and then"


async def test_an_address_is_well_formed_and_fits_its_key(opened: Opened) -> None:
    key = seed()
    async with opened as transport:
        listener = await transport.listen(key)
        assert parse_address(listener.address) == listener.address
        assert is_of_key(listener.address, key.public())
        await listener.aclose()


async def test_an_address_can_be_had_again(opened: Opened) -> None:
    key = seed()
    async with opened as transport:
        first = await transport.listen(key)
        async with serving(first):
            pass
        again = await transport.listen(key, first.address)
        assert again.address == first.address
        async with serving(again):
            stream = await transport.connect(again.address, "a")
            await stream.send_all(b"back")
            assert await read_exactly(stream, 4) == b"back"
            await stream.aclose()


async def test_an_open_address_is_not_given_twice(opened: Opened) -> None:
    key = seed()
    async with opened as transport:
        listener = await transport.listen(key)
        with pytest.raises(TransportError):
            await transport.listen(key, listener.address)
        await listener.aclose()


async def test_a_handler_that_fails_costs_its_own_stream_only(opened: Opened) -> None:
    async def fussy(stream: trio.abc.Stream) -> None:
        if await read_exactly(stream, 1) == b"!":
            raise RuntimeError("on purpose")
        await echo(stream)

    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener, fussy):
            good = await transport.connect(listener.address, "a")
            await good.send_all(b".")
            bad = await transport.connect(listener.address, "b")
            await bad.send_all(b"!")
            assert await read_to_end(bad) == b""
            await good.send_all(b"still here")
            assert await read_exactly(good, 10) == b"still here"
            await bad.aclose()
            await good.aclose()


async def test_a_stream_is_closed_after_its_handler(opened: Opened) -> None:
    async def greet(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"hello")

    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener, greet):
            stream = await transport.connect(listener.address, "a")
            assert await read_to_end(stream) == b"hello"
            await stream.aclose()


async def test_streams_already_accepted_outlive_the_listener(opened: Opened) -> None:
    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener):
            stream = await transport.connect(listener.address, "a")
            await stream.send_all(b"1")
            assert await read_exactly(stream, 1) == b"1"
            await listener.aclose()
            await stream.send_all(b"2")
            assert await read_exactly(stream, 1) == b"2"
            await stream.aclose()


async def test_a_withdrawn_address_is_not_reached(opened: Opened) -> None:
    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener):
            pass
        # Tor may say nothing for minutes, which is why deadlines are the caller's.
        with pytest.raises((TransportError, trio.TooSlowError)), trio.fail_after(NO_ANSWER):
            await transport.connect(listener.address, "a")


async def test_serving_stops_when_cancelled(opened: Opened) -> None:
    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener):
            stream = await transport.connect(listener.address, "a")
            await stream.send_all(b"1")
            assert await read_exactly(stream, 1) == b"1"
        with suppress(trio.BrokenResourceError):  # this or the end: the handler is gone either way
            assert await read_to_end(stream) == b""
        await stream.aclose()


async def test_an_address_of_another_kind_is_refused(kind: Kind, opened: Opened) -> None:
    async with opened as transport:
        with pytest.raises(TransportError) as caught:
            await transport.connect(kind.foreign, "a")
    assert kind.foreign not in str(caught.value)


async def test_several_listeners_are_published_and_reached_at_once(opened: Opened) -> None:
    async with opened as transport:
        reached: list[bytes] = []

        async def one(number: int) -> None:
            listener = await transport.listen(seed())
            async with serving(listener):
                stream = await transport.connect(listener.address, str(number))
                await stream.send_all(bytes([number]))
                reached.append(await read_exactly(stream, 1))
                await stream.aclose()

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(one, number)
    assert sorted(reached) == [bytes([number]) for number in range(5)]


async def test_a_stream_that_its_handler_keeps_stays_open(opened: Opened) -> None:
    kept: list[trio.abc.Stream] = []
    came = trio.Event()

    async def keep(stream: trio.abc.Stream) -> bool:
        kept.append(stream)
        came.set()
        return True

    async with opened as transport:
        listener = await transport.listen(seed())
        async with serving(listener, keep):
            stream = await transport.connect(listener.address, "kept", b"said ahead")
            await came.wait()
            await trio.sleep(0.1)
            assert await read_exactly(kept[0], 10) == b"said ahead"
            await kept[0].send_all(b"an answer")
            assert await read_exactly(stream, 9) == b"an answer"
            await kept[0].aclose()
            assert await read_to_end(stream) == b""
            await stream.aclose()
