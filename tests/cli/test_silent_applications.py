"""Applications that connect and say nothing, or are too many, keep nobody else from the control socket."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from fake_daemon import FakeDaemon

from hushcast_local import control_server as server

GREETING = b'{"op":"hello","version":2}\n'  # the daemon's
HELLO = b'{"op": "hello", "version": 2}\n'
SUBSCRIBE = HELLO + b'{"op": "subscribe", "topic": "weather"}\n'
STATUS = HELLO + b'{"op": "status"}\n'


async def asked(daemon: FakeDaemon, request: bytes) -> dict[str, object]:
    """Ask, and return the first answer."""
    with trio.fail_after(10):
        async with await trio.open_unix_socket(daemon.socket) as stream:
            return await line(stream, request)


async def line(stream: trio.SocketStream, request: bytes) -> dict[str, object]:
    await stream.send_all(request)
    told = b""
    while b"\n" not in told.removeprefix(GREETING) or told == GREETING:
        told += await stream.receive_some()
    answer: dict[str, object] = json.loads(told.removeprefix(GREETING).partition(b"\n")[0])
    return answer


@asynccontextmanager
async def silence(daemon: FakeDaemon) -> AsyncIterator[None]:
    """Hold more connections that say nothing than there are places for them."""
    async with AsyncExitStack() as held:
        for _ in range(3 * server.MAX_SILENT):
            await held.enter_async_context(await trio.open_unix_socket(daemon.socket))
        yield


async def test_silent_ones_give_way(daemon: FakeDaemon) -> None:
    async with silence(daemon):
        for _ in range(5):
            assert (await asked(daemon, STATUS))["event"] == "status"


async def test_one_that_listens_is_not_in_their_way(daemon: FakeDaemon) -> None:
    async with await trio.open_unix_socket(daemon.socket) as listening:
        assert (await line(listening, SUBSCRIBE))["event"] == "subscribed"
        async with silence(daemon):
            with trio.move_on_after(1):
                assert await listening.receive_some() is None, "its connection was closed"


async def test_one_too_many_is_told_so(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    async with await trio.open_unix_socket(daemon.socket) as listening:
        assert (await line(listening, SUBSCRIBE))["event"] == "subscribed"
        async with await trio.open_unix_socket(daemon.socket) as another:
            assert (await line(another, SUBSCRIBE))["event"] == "subscribed"
            told = await asked(daemon, STATUS)
            assert told["event"] == "failed"
            assert "2 applications are connected" in str(told)
        await trio.sleep(0.2)
        assert (await asked(daemon, STATUS))["event"] == "status"


async def test_a_request_that_is_none_is_still_answered(daemon: FakeDaemon) -> None:
    assert (await asked(daemon, b"nonsense\n"))["event"] == "failed"
