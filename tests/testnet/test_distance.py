"""The distance between tors: what is drawn, and what passes the proxy takes as long and is as it was."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio
from trio.testing import memory_stream_pair

from hushcast_protocol.base.errors import UsageError
from hushcast_testnet import testnet
from hushcast_testnet.tor import distance_proxy
from hushcast_testnet.tor.distance import MAX_DISTANCE, SPREAD, Distance
from hushcast_testnet.tor.distance_proxy import MAX_IN_FLIGHT, DistanceProxy, TorDoor, pass_on

DRAWS = 2000
DELAY = 3.0  # seconds


def test_the_same_seed_draws_the_same() -> None:
    one, same, other = Distance(40, 7), Distance(40, 7), Distance(40, 8)
    drawn = [one.draw("relay0 ORPort", number) for number in range(50)]
    assert drawn == [same.draw("relay0 ORPort", number) for number in range(50)]
    assert len({*drawn}) == 50
    assert drawn[0] != other.draw("relay0 ORPort", 0)
    assert drawn[0] != one.draw("relay1 ORPort", 0)


def test_both_ways_are_log_normal_around_what_was_asked() -> None:
    """The statistic of Kolmogorov and Smirnov; one in a thousand seeds would exceed 1.95 / √n."""
    drawn = [Distance(40).draw("relay0 ORPort", number) for number in range(DRAWS)]
    for way in ([delay.there for delay in drawn], [delay.back for delay in drawn]):
        expected = statistics.NormalDist(math.log(0.040) - SPREAD**2 / 2, SPREAD)
        logs = sorted(map(math.log, way))
        steps = [(number / DRAWS, (number + 1) / DRAWS, expected.cdf(log)) for number, log in enumerate(logs)]
        assert max(max(there - below, above - there) for below, above, there in steps) < 1.95 / DRAWS**0.5
        assert statistics.fmean(way) == pytest.approx(0.040, rel=0.05)
    assert abs(statistics.correlation(*zip(*drawn, strict=True))) < 0.08


def test_twice_as_far_takes_twice_as_long() -> None:
    near, far = Distance(20, 3).draw("a", 0), Distance(40, 3).draw("a", 0)
    assert far == pytest.approx([2 * near.there, 2 * near.back])
    assert far.round_trip == far.there + far.back
    assert Distance(0).draw("a", 0) == (0, 0)


@pytest.mark.parametrize("ms", [-1, MAX_DISTANCE + 1])
def test_a_distance_that_cannot_be_is_refused(ms: int) -> None:
    with pytest.raises(UsageError, match="give 0 to 500 milliseconds"):
        Distance(ms)


def test_where_there_is_no_tor_there_is_no_distance(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a distance is between tors"):
        testnet.up(tmp_path / "net", 1, 0, "tcp", distance=Distance(40))
    assert list(tmp_path.iterdir()) == []


def test_a_record_without_distance_has_none() -> None:
    before = {"transport": "tcp", "epoch": 30, "began": 1.0, "members": [], "tor": None}
    assert msgspec.convert(before, type=testnet.Testnet).distance == Distance(0)


@asynccontextmanager
async def passing(seconds: float = DELAY) -> AsyncIterator[tuple[trio.StapledStream, trio.StapledStream]]:
    """Yield both ends of a path that takes so long one way."""
    near, source = memory_stream_pair()
    sink, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_on, source, sink, seconds)
        yield near, far
        with trio.fail_after(60):
            await near.send_eof()
            while await far.receive_some():
                pass


async def test_each_byte_comes_so_much_later(autojump_clock) -> None:
    async with passing() as (near, far):
        for _ in range(3):
            sent = trio.current_time()
            await near.send_all(b"x")
            assert await far.receive_some() == b"x"
            assert trio.current_time() - sent == pytest.approx(DELAY)
            await trio.sleep(0.7)


async def test_what_is_sent_together_comes_together_and_in_order(autojump_clock) -> None:
    data = random.Random(1).randbytes(4_000_000)
    async with passing() as (near, far):
        began = trio.current_time()
        for start in range(0, len(data), 10_000):
            await near.send_all(data[start : start + 10_000])
        came = bytearray()
        while len(came) < len(data):
            came += await far.receive_some()
        assert came == data
        assert trio.current_time() - began == pytest.approx(DELAY), "a path is no brake"


async def test_what_was_sent_apart_comes_as_far_apart(autojump_clock) -> None:
    async with passing() as (near, far):
        began, came = trio.current_time(), []

        async def listen() -> None:
            for _ in range(5):
                came.append((await far.receive_some(), trio.current_time() - began))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            for number in range(5):
                await near.send_all(b"%d" % number)
                await trio.sleep(0.5)
        assert came == [(b"%d" % number, pytest.approx(DELAY + number / 2)) for number in range(5)]


async def test_an_end_comes_behind_what_was_sent(autojump_clock) -> None:
    async with passing() as (near, far):
        began = trio.current_time()
        await near.send_all(b"last")
        await trio.sleep(1)
        await near.send_eof()
        assert await far.receive_some() == b"last"
        assert await far.receive_some() == b""
        assert trio.current_time() - began == pytest.approx(1 + DELAY)


async def test_what_is_under_way_outlives_its_sender(autojump_clock) -> None:
    near, source = memory_stream_pair()
    sink, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_on, source, sink, DELAY)
        await near.send_all(b"farewell")
        await trio.sleep(1)
        await source.aclose()  # as if it broke
        assert await far.receive_some() == b"farewell"
        assert await far.receive_some() == b""


async def test_a_path_ends_with_who_takes_no_more(autojump_clock) -> None:
    near, source = memory_stream_pair()
    sink, far = memory_stream_pair()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pass_on, source, sink, DELAY)
            await far.aclose()
            await near.send_all(b"to nobody")  # and it does not end: the nursery would wait for ever


async def test_more_than_a_window_waits_at_its_sender(autojump_clock) -> None:
    taken = 0

    class Endless(trio.abc.ReceiveStream):
        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            nonlocal taken
            await trio.lowlevel.checkpoint()
            taken += max_bytes or 0
            return bytes(max_bytes or 0)

        async def aclose(self) -> None:
            pass

    sink, _ = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pass_on, Endless(), sink, DELAY)
        await trio.sleep(DELAY / 2)
        assert MAX_IN_FLIGHT * 0.98 < taken <= MAX_IN_FLIGHT
        await trio.sleep(DELAY)
        assert taken > MAX_IN_FLIGHT, "what has arrived makes room"
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def door(distance: Distance, clock: trio.testing.MockClock) -> AsyncIterator[partial]:
    """Yield what connects to an echo through the proxy."""
    clock.autojump_threshold = 0.01  # seconds of silence: a busy kernel may pass bytes on a little later
    own = await trio.open_tcp_listeners(0, host="127.0.0.1")
    found = await trio.open_tcp_listeners(0, host="127.0.0.1")
    own_port, port = (one[0].socket.getsockname()[1] for one in (own, found))
    carry = partial(
        DistanceProxy(distance).carry, TorDoor("relay0 ORPort", "127.0.0.1", port, "127.0.0.1", own_port)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, echo, own)
        nursery.start_soon(trio.serve_listeners, carry, found)
        yield partial(trio.open_tcp_stream, "127.0.0.1", port)
        nursery.cancel_scope.cancel()


async def echo(stream: trio.SocketStream) -> None:
    async with stream:
        with suppress(trio.BrokenResourceError):
            async for data in stream:
                await stream.send_all(data)


async def test_a_connection_takes_a_round_trip_to_open_and_one_to_answer(autojump_clock) -> None:
    """Each connection that comes to a door takes what is drawn for it."""
    asked = Distance(500, 4)
    async with door(asked, autojump_clock) as connect:
        for number in range(4):
            expected = asked.draw("relay0 ORPort", number).round_trip
            async with await connect() as stream:
                for trips in (2, 1):
                    began = trio.current_time()
                    await stream.send_all(b"ping")
                    assert await stream.receive_some() == b"ping"
                    assert trio.current_time() - began == pytest.approx(trips * expected, abs=0.02)


async def test_both_sides_end_apart(autojump_clock) -> None:
    async with door(Distance(200), autojump_clock) as connect, await connect() as stream:
        await stream.send_all(b"all")
        await stream.send_eof()
        assert [data async for data in stream] == [b"all"]


async def test_one_connection_too_many_ends_at_once(autojump_clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distance_proxy, "MAX_CONNECTIONS", 2)
    async with door(Distance(200), autojump_clock) as connect:
        held = [await connect() for _ in range(2)]
        for stream in held:
            await stream.send_all(b"x")
            assert await stream.receive_some() == b"x"
        async with await connect() as refused:
            with suppress(trio.BrokenResourceError):
                assert await refused.receive_some() == b""
        await held.pop().aclose()
        await trio.sleep(2)
        async with await connect() as stream:
            await stream.send_all(b"x")
            assert await stream.receive_some() == b"x"
        await held.pop().aclose()


async def test_where_a_tor_has_ended_connections_end() -> None:
    proxy = DistanceProxy(Distance(1))
    found = await trio.open_tcp_listeners(0, host="127.0.0.1")
    (gone,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nobody = TorDoor("x", "127.0.0.1", 0, "127.0.0.1", gone.socket.getsockname()[1])
    await gone.aclose()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, partial(proxy.carry, nobody), found)
        async with await trio.open_tcp_stream("127.0.0.1", found[0].socket.getsockname()[1]) as stream:
            assert await stream.receive_some() == b""
        nursery.cancel_scope.cancel()
