"""The path: what is cut off waits, what is delayed comes late, what is lost stalls or resets."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from hushcast_protocol.base.addresses import Address
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_testnet import path_proxy
from hushcast_testnet.path_proxy import PathConditions, PathRelay

HERE, THERE = "127.77.5.1", "127.77.5.2"


class Route:
    """A relay on the path, a daemon here that connects, one there that echoes."""

    def __init__(self, door: Endpoint, relay: PathRelay, address: Address) -> None:
        self._door = door
        self.relay = relay
        self.address = address

    async def connect(self) -> trio.abc.Stream:
        return await TcpTransport(HERE, self._door).connect(self.address, "x")


@pytest.fixture
async def route() -> AsyncIterator[Route]:
    relay = PathRelay(random.Random(1))
    doors = await trio.open_tcp_listeners(0, host="127.0.0.1")
    listeners = await trio.open_tcp_listeners(0, host=THERE)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, relay.carry, doors)
        nursery.start_soon(trio.serve_listeners, echo, listeners)
        port = listeners[0].socket.getsockname()[1]
        door = Endpoint("127.0.0.1", doors[0].socket.getsockname()[1])
        yield Route(door, relay, Address(f"{THERE}:{port}"))
        nursery.cancel_scope.cancel()


async def echo(stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        async for data in stream:
            await stream.send_all(data)


async def read(stream: trio.abc.Stream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        assert piece
        data += piece
    return data


async def nothing_comes(stream: trio.abc.Stream) -> bool:
    with trio.move_on_after(1) as waiting:
        await stream.receive_some()
    return waiting.cancelled_caught


async def test_bytes_pass_unchanged_and_in_order(route: Route) -> None:
    data = random.Random(2).randbytes(3_000_000)
    async with await route.connect() as stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, data)
        assert await read(stream, len(data)) == data


@pytest.mark.parametrize("host", [HERE, THERE])
async def test_what_is_cut_off_waits_and_is_not_lost(route: Route, autojump_clock, host: str) -> None:
    async with await route.connect() as stream:
        route.relay.set(PathConditions(host, cut=True))
        await stream.send_all(b"waits")
        assert await nothing_comes(stream)
        route.relay.set(PathConditions("127.77.5.9", cut=True))  # somebody else's trouble
        assert await nothing_comes(stream)
        route.relay.set(PathConditions(host))
        assert await read(stream, 5) == b"waits"


@pytest.mark.parametrize("host", [HERE, THERE])
async def test_nobody_connects_across_a_cut(route: Route, autojump_clock, host: str) -> None:
    route.relay.set(PathConditions(host, cut=True))
    with pytest.raises(trio.TooSlowError), trio.fail_after(1):
        await route.connect()

    async def connect() -> None:
        async with await route.connect() as stream:
            await stream.send_all(b"x")
            assert await read(stream, 1) == b"x"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(connect)
        await trio.sleep(1)
        route.relay.set(PathConditions(host))  # it connects now, or the nursery waits for ever


async def test_each_way_takes_the_delays_of_both_ends(route: Route, autojump_clock) -> None:
    async with await route.connect() as stream:
        route.relay.set(PathConditions(HERE, delay=1.0))
        route.relay.set(PathConditions(THERE, delay=2.0))
        began = trio.current_time()
        await stream.send_all(b"x")
        assert await read(stream, 1) == b"x"
        assert 6.0 <= trio.current_time() - began <= 9.0 + 0.1


async def test_a_delay_is_no_limit_on_what_is_on_its_way(route: Route, autojump_clock) -> None:
    async with await route.connect() as stream:
        route.relay.set(PathConditions(HERE, delay=5.0))
        began = trio.current_time()
        for _ in range(10):
            await stream.send_all(b"0123456789")
        assert len(await read(stream, 100)) == 100
        assert trio.current_time() - began < 2 * 5.0 * 1.5 + 0.1


async def test_losses_stall_and_lose_nothing(route: Route, autojump_clock) -> None:
    data = random.Random(3).randbytes(300_000)
    async with await route.connect() as stream, trio.open_nursery() as nursery:
        route.relay.set(PathConditions(HERE, loss=0.02))
        began = trio.current_time()
        nursery.start_soon(stream.send_all, data)
        assert await read(stream, len(data)) == data
        assert trio.current_time() > began


async def test_too_many_losses_in_a_row_reset_the_connection(route: Route, autojump_clock) -> None:
    async with await route.connect() as stream:
        route.relay.set(PathConditions(HERE, loss=0.999))
        await stream.send_all(b"x")
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()


async def test_where_nobody_listens_there_is_no_connection(route: Route) -> None:
    route.address = Address(f"{THERE}:1")
    with pytest.raises(TransportError, match="nobody listens"):
        await route.connect()


async def test_the_path_leads_nowhere_but_to_loopback(route: Route) -> None:
    for asked in (b"192.0.2.1:80\n", b"localhost:80\n", b"\n", b"\xff" * 300 + b"\n"):
        stream = await trio.open_tcp_stream(route._door.host, route._door.port)
        async with stream:
            await stream.send_all(asked)
            with pytest.raises((trio.BrokenResourceError, AssertionError)):
                await read(stream, 1)


async def test_conditions_are_changed_through_a_socket(tmp_path: Path) -> None:
    with pytest.raises(TransportError):
        await path_proxy.set_conditions(tmp_path / path_proxy.CONTROL, PathConditions(HERE))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(path_proxy.serve, tmp_path)
        while not (tmp_path / path_proxy.PORT_FILE).exists():  # noqa: ASYNC110 - a file sets no event
            await trio.sleep(0.01)
        door = Endpoint("127.0.0.1", int((tmp_path / path_proxy.PORT_FILE).read_text()))
        listeners = await trio.open_tcp_listeners(0, host=THERE)
        nursery.start_soon(trio.serve_listeners, echo, listeners)
        address = Address(f"{THERE}:{listeners[0].socket.getsockname()[1]}")
        await path_proxy.set_conditions(tmp_path / path_proxy.CONTROL, PathConditions(HERE, cut=True))
        with trio.move_on_after(0.5) as cut_off:
            await TcpTransport(HERE, door).connect(address, "x")
        assert cut_off.cancelled_caught
        await path_proxy.set_conditions(tmp_path / path_proxy.CONTROL, PathConditions(HERE))
        async with await TcpTransport(HERE, door).connect(address, "x") as stream:
            await stream.send_all(b"x")
            assert await read(stream, 1) == b"x"
        nursery.cancel_scope.cancel()
