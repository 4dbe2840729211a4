"""What a stream over HTTP takes of memory, beside a client of MQTT that is subscribed to the same.

`STREAMS=1000 pytest -s` of this file says what each of a thousand takes.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
from hostile_world import GatewayUnderAttack, moment
from http_world import HttpCaller

from hushcast_gateway.tokens import new_token, token_hash
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import V5, Connect, RequestedSubscription, Subscribe

pytestmark = pytest.mark.processes

STREAMS = int(os.environ.get("STREAMS", "200"))
USERS = 4  # one alone has four fifths of all places at most
MOST = 60_000  # bytes a stream; 1,000 took 29,900 each
TOKENS = [new_token(bytes([number]).__mul__) for number in range(USERS)]

Opened = Callable[[GatewayUnderAttack, str], Awaitable[trio.SocketStream]]


async def by_http(gateway: GatewayUnderAttack, token: str) -> trio.SocketStream:
    stream = await trio.open_tcp_stream("127.0.0.1", gateway.http)
    caller = HttpCaller(stream)
    assert (await caller.stream_of("/a/b/json", Authorization=f"Bearer {token}")).status_code == 200
    assert (await caller.message())["event"] == "open"
    return stream


async def by_mqtt(gateway: GatewayUnderAttack, token: str) -> trio.SocketStream:
    stream = await trio.open_tcp_stream("127.0.0.1", gateway.port)
    packets = (
        Connect(V5, "", keep_alive=60, username="", password=token.encode()),
        Subscribe(1, [RequestedSubscription("a/b")]),
    )
    await stream.send_all(b"".join(encode(one, V5) for one in packets))
    heard = b""
    while b"\x90" not in heard:  # SUBACK
        heard += await stream.receive_some()
    return stream


async def memory_each(directory: Path, opened: Opened) -> float:
    """Return the bytes that each takes, where the gateway has seen some before."""
    directory.mkdir()
    sections = (
        f'[users.u{number}]\ntokens = ["{token_hash(token.encode())}"]\nsubscribe = ["#"]\n'
        for number, token in enumerate(TOKENS)
    )
    room = f"[limits]\nclients = {2 * STREAMS}\n"
    gateway = GatewayUnderAttack(directory, "".join((*sections, room)))
    streams = [await opened(gateway, TOKENS[0]) for _ in range(20)]
    try:
        before, few = gateway.memory, len(streams)
        streams += [await opened(gateway, TOKENS[number % USERS]) for number in range(STREAMS)]
        await moment(lambda: gateway.files > STREAMS)
        assert len(streams) == few + STREAMS
        return (gateway.memory - before) / STREAMS
    finally:
        for stream in streams:
            await stream.aclose()
        gateway.process.kill()
        gateway.process.wait()


async def test_a_stream_takes_little_memory(tmp_path: Path) -> None:
    found = {one.__name__: await memory_each(tmp_path / one.__name__, one) for one in (by_http, by_mqtt)}
    print(f"bytes each of {STREAMS}: {found}")
    assert found["by_http"] < MOST
