"""Hostile clients of a gateway over HTTP, in a process of their own, as those of MQTT (`attacks.py`)."""

from __future__ import annotations

import random
import sys
from base64 import b64encode
from contextlib import suppress

import trio
from attacks import BROKEN, HELD, WORKERS, Target, attack, many, slowly, swallow

HEAD = b"Host: 127.0.0.1\r\n"
BODY = 300_000  # bytes: close to the largest that is taken


async def ask(to: Target, first: bytes, rest: bytes = b"", body: bytes = b"") -> None:
    """Ask over a connection of its own, and read all that is answered."""
    async with await to.dial(to.http) as stream:
        length = b"Content-Length: %d\r\n" % len(body) if body else b""
        await stream.send_all(
            first + b" HTTP/1.1\r\nConnection: close\r\n" + HEAD + rest + length + b"\r\n" + body
        )
        with trio.move_on_after(5):
            await swallow(stream)


async def slow_heads(to: Target) -> None:
    async def one() -> None:
        await slowly(await to.dial(to.http), b"GET /a/json HTTP/1.1\r\n" + HEAD + b"X-Slow: " + b"x" * 9_000)

    await many(HELD, one)


async def slow_bodies(to: Target) -> None:
    """Bodies that never end, announced or in chunks, of who is let in."""

    async def one() -> None:
        how = random.choice(
            [b"Content-Length: 300000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n49000\r\n"]
        )
        stream = await to.dial(to.http)
        await stream.send_all(b"POST /slow HTTP/1.1\r\n" + HEAD + how + bytes(200_000))
        await slowly(stream, b"x" * 9_000)

    await many(HELD // 4, one)


async def idle(to: Target) -> None:
    """Connections that asked once and stay."""

    async def one() -> None:
        async with await to.dial(to.http) as stream:
            await stream.send_all(b"GET /v1/health HTTP/1.1\r\n" + HEAD + b"\r\n")
            await swallow(stream)

    await many(HELD, one)


async def streams_unread(to: Target) -> None:
    async def one() -> None:
        async with await to.dial(to.http) as stream:
            form = random.choice([b"json", b"sse", b"raw"])
            await stream.send_all(b"GET /%23/" + form + b"?since=all HTTP/1.1\r\n" + HEAD + b"\r\n")
            await trio.sleep(20)

    async def writer() -> None:
        await ask(to, b"POST /kept/big", body=random.randbytes(BODY // 10))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(many, HELD // 4, one)
        nursery.start_soon(many, 2, writer)


async def publications(to: Target) -> None:
    """As many as there can be, each over a connection of its own and kept."""

    async def one() -> None:
        await ask(to, b"POST /kept/%d" % random.randrange(5_000), b"Title: t\r\nTags: a,b\r\n", b"x" * 100)

    await many(2 * WORKERS, one)


async def large(to: Target) -> None:
    async def one() -> None:
        size = random.choice([BODY, 10 * BODY])
        await ask(to, b"POST /large", body=random.randbytes(size))
        await ask(to, b"POST /", body=b"[" * BODY)

    await many(WORKERS, one)


async def polls(to: Target) -> None:
    """All that is kept, again and again."""

    async def one() -> None:
        await ask(to, b"GET /kept/%23,kept/+/json?poll=1")

    await many(WORKERS, one)


async def strangers(to: Target) -> None:
    async def one() -> None:
        said = [
            b"Basic " + b64encode(b"alice:wrong"),
            b"Bearer tk_" + b"x" * 29,
            b"Basic " + b64encode(b"x:y"),
        ]
        await ask(to, b"GET /a/json", b"Authorization: " + random.choice(said) + b"\r\n")

    await many(4 * WORKERS, one)


async def nonsense(to: Target) -> None:
    """Requests with bytes in them that do not belong there, and frames that are none."""
    upgrade = (
        b"GET /a/ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n" + HEAD + b"\r\n"
    )

    async def one() -> None:
        sound = b"POST /a?title=x HTTP/1.1\r\n" + HEAD + b"Tags: a\r\nContent-Length: 3\r\n\r\nabc"
        at = random.randrange(len(sound))
        async with await to.dial(to.http) as stream:
            await stream.send_all(sound[:at] + random.randbytes(20) + sound[at:])
            with trio.move_on_after(1), suppress(*BROKEN):
                await stream.send_eof()
                await swallow(stream)
        async with await to.dial(to.http) as stream:
            await stream.send_all(upgrade + random.randbytes(200))
            with trio.move_on_after(1):
                await swallow(stream)

    await many(WORKERS, one)


HTTP_ATTACKS = {
    one.__name__: one
    for one in (
        *(slow_heads, slow_bodies, idle, streams_unread, publications),
        *(large, polls, strangers, nonsense),
    )
}


if __name__ == "__main__":
    trio.run(attack, HTTP_ATTACKS, sys.argv)
