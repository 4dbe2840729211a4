"""A client's stream over a real socket: what that takes is written at once, and others have turns."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from hushcast_gateway.clients.client_stream import MAX_WAITING, WRITE_WITHIN, ClientStream
from hushcast_runtime.transports.at_once import ReadyStream
from hushcast_runtime.transports.base import TransportError


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[ClientStream, trio.SocketStream]]:
    """Give the gateway's end of a connection, and its client's."""
    ours, theirs = (trio.SocketStream(one) for one in trio.socket.socketpair())
    async with ours, theirs:
        yield ClientStream(ours, set(), 0.0), theirs


@asynccontextmanager
async def writing(stream: ClientStream) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.write, lambda: None)
        await wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel()


async def test_what_a_socket_takes_is_written_without_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(seconds: float) -> trio.CancelScope:
        raise AssertionError("a deadline where nobody waits")

    async with pair() as (stream, client), writing(stream):
        monkeypatch.setattr(trio, "fail_after", refuse)
        for number in range(4):
            stream.send(b"%d" % number)
        await wait_all_tasks_blocked()
        assert await client.receive_some() == b"0123"
        assert (stream.packets_out, stream.bytes_out, stream._size) == (4, 4, 0)


async def test_what_it_does_not_take_follows_in_order() -> None:
    sent = b"".join(b"%08d" % number for number in range(MAX_WAITING // 8))
    async with pair() as (stream, client), writing(stream):
        stream.send(sent[:100])
        stream.send(sent[100:])
        await wait_all_tasks_blocked()
        stream.send(b"last")
        got = b""
        while len(got) < len(sent) + 4:
            got += await client.receive_some(65_536)
        assert got == sent + b"last"
        await wait_all_tasks_blocked()
        assert stream._size == 0


async def test_a_client_that_takes_no_more_is_gone_in_time(autojump_clock: MockClock) -> None:
    async with pair() as (stream, _):
        stream.send(bytes(8 * MAX_WAITING))
        with pytest.raises(TransportError, match="does not read"):
            await stream.write(lambda: None)
        assert trio.current_time() == pytest.approx(WRITE_WITHIN)


async def test_a_client_that_left_is_an_end() -> None:
    async with pair() as (stream, client):
        await client.aclose()
        stream.send(b"to nobody")
        with pytest.raises(TransportError, match="broke"):
            await stream.write(lambda: None)


class Swallowing(ReadyStream):
    """A stream that takes whatever is written, as the fastest of readers would."""

    def __init__(self) -> None:
        self.writes = 0

    def write_at_once(self, data: bytes) -> int:
        self.writes += 1
        return len(data)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        raise AssertionError("it takes all at once")

    async def wait_send_all_might_not_block(self) -> None:
        raise AssertionError("it takes all at once")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.sleep_forever()
        return b""

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def test_others_have_their_turn_between_two_writes() -> None:
    swallowing = Swallowing()
    stream = ClientStream(swallowing, set(), 0.0)
    stream.send(bytes(MAX_WAITING))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while stream._size:
            turns += 1
            await trio.lowlevel.checkpoint()
        stream.close(b"")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        nursery.start_soon(stream.write, lambda: None)
    assert turns >= swallowing.writes - 1 > 4
