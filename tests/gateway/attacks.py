"""Hostile clients of an MQTT gateway, in a process of their own: each attack goes on until its time is over.

python tests/gateway/attacks.py SECONDS TCP_PORT WEBSOCKET_PORT HTTP_PORT ATTACK...
"""

from __future__ import annotations

import random
import socket as sockets
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count

import trio

from hushcast_protocol.mqtt.limits import MAX_ASKED, MAX_INCOMING, MAX_RETAINED, MAX_SESSIONS
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Connect,
    Packet,
    Publish,
    RequestedSubscription,
    Subscribe,
)

BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
WORKERS = 8  # streams that do the same at once
HELD = 400  # connections that are held open and do little
RATE = 5_000_000  # bytes a second of the flood of QoS 0


class Target:
    """Where to."""

    def __init__(self, port: int, websocket: int, http: int) -> None:
        self.port, self.websocket, self.http = port, websocket, http
        self._names = count()

    async def dial(self, port: int = 0) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", port or self.port)

    async def client(self, version: int = V5, expiry: int = 0, **fields: object) -> trio.SocketStream:
        """Connect under a name that is new; the CONNACK is not awaited."""
        stream = await self.dial()
        properties = {"session_expiry_interval": expiry} if expiry else {}
        name = f"eve{next(self._names)}"
        made = Connect(version, name, not expiry, 0, properties=properties, **fields)  # type: ignore[arg-type]
        await send(stream, version, made)
        return stream


Attack = Callable[[Target], Awaitable[None]]


async def send(stream: trio.SocketStream, version: int, *packets: Packet) -> None:
    await stream.send_all(b"".join(encode(packet, version) for packet in packets))


async def swallow(stream: trio.SocketStream) -> None:
    """Read until the end."""
    with suppress(*BROKEN):
        while await stream.receive_some(65_536):
            pass


async def many(times: int, one: Callable[[], Awaitable[None]]) -> None:
    """Do the same in many tasks, each again and again as its connections break."""

    async def again() -> None:
        while True:
            try:
                await one()
            except* BROKEN:
                pass
            await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        for _ in range(times):
            nursery.start_soon(again)


async def slowly(stream: trio.SocketStream, data: bytes) -> None:
    async with stream:
        for byte in data:
            await stream.send_all(bytes((byte,)))
            await trio.sleep(0.5)


async def slow_connects(to: Target) -> None:
    async def one() -> None:
        await slowly(await to.dial(), encode(Connect(V5, "x" * 200), V5))

    await many(HELD, one)


async def slow_packets(to: Target) -> None:
    async def one() -> None:
        await slowly(await to.client(), b"\x30\xff\xff\x13" + b"\x00" * 300_000)

    await many(HELD // 4, one)


async def half_open(to: Target) -> None:
    """Nothing is sent at all, or the connection is reset in the middle of a CONNECT."""

    async def silent() -> None:
        async with await to.dial() as stream:
            await stream.receive_some(1)

    async def reset() -> None:
        stream = await to.dial()
        await stream.send_all(encode(Connect(V5, "x"), V5)[:9])
        stream.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(many, HELD, silent)
        nursery.start_soon(many, 2, reset)


async def connections(to: Target) -> None:
    """Clients that come and go, and as many that stay as there may be."""

    async def brief() -> None:
        async with await to.client() as stream:
            await stream.receive_some(100)

    async def staying() -> None:
        async with await to.client() as stream:
            await swallow(stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(many, WORKERS, brief)
        for _ in range(11):
            nursery.start_soon(many, 100, staying)
            await trio.sleep(0.05)


async def subscriptions(to: Target) -> None:
    async def one() -> None:
        async with await to.client() as stream:
            filters = [RequestedSubscription(f"{n}/+/{random.random()}/#", 2) for n in range(MAX_ASKED)]
            await send(stream, V5, Subscribe(1, filters))
            await stream.receive_some(1_000)

    await many(WORKERS, one)


async def wildcards(to: Target) -> None:
    """Filters that match at every level, and topics that are looked up through all of them."""

    async def reader() -> None:
        async with await to.client() as stream:
            chance = random.Random()
            made = ["/".join(chance.choice("+a") for _ in range(31)) + "/#" for _ in range(MAX_ASKED)]
            await send(stream, V5, Subscribe(1, [RequestedSubscription(one) for one in made]))
            await swallow(stream)

    async def writer() -> None:
        async with await to.client() as stream:
            while True:
                topic = "/".join(random.choice("ab") for _ in range(31)) + f"/{random.random()}"
                await send(stream, V5, Publish(topic, b"x"))
                await trio.sleep(0.001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(many, 10, reader)
        nursery.start_soon(many, 2, writer)


async def retained(to: Target) -> None:
    async def one() -> None:
        async with await to.client() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(swallow, stream)
            for n in range(MAX_RETAINED):
                await send(
                    stream, V5, Publish(f"r/{random.randrange(2 * MAX_RETAINED)}", b"x" * 8_192, 0, True)
                )
                if n % 20 == 0:
                    await trio.sleep(0.01)

    await many(2, one)


async def sessions(to: Target) -> None:
    """Sessions that outlive their connections, more than there may be, and messages that wait in them."""

    async def one() -> None:
        for _ in range(2 * MAX_SESSIONS // WORKERS):
            async with await to.client(expiry=1_000) as stream:
                await send(stream, V5, Subscribe(1, [RequestedSubscription("s/#", 1)]))
                await stream.receive_some(100)

    async def writer() -> None:
        async with await to.client() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(swallow, stream)
            while True:
                await send(stream, V5, Publish("s/x", b"x" * 5_000, 1, packet_id=1))
                await trio.sleep(0.2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(many, WORKERS, one)
        nursery.start_soon(many, 1, writer)


async def never_released(to: Target) -> None:
    async def one() -> None:
        async with await to.client(V311) as stream, trio.open_nursery() as nursery:
            nursery.start_soon(swallow, stream)
            for n in range(MAX_INCOMING + 10):
                await send(stream, V311, Publish("q", b"x" * 100, 2, packet_id=n + 1))
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    await many(WORKERS, one)


async def never_reading(to: Target) -> None:
    async def reader() -> None:
        async with await to.client(expiry=5) as stream:
            await send(
                stream, V5, Subscribe(1, [RequestedSubscription("#", 1), RequestedSubscription("$SYS/#", 1)])
            )
            await trio.sleep_forever()

    async def writer() -> None:
        async with await to.client() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(swallow, stream)
            while True:
                await send(
                    stream, V5, Publish("n", b"x" * 10_000, 1, packet_id=1), Publish("n", b"x" * 10_000)
                )
                await trio.sleep(0.02)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(many, 10, reader)
        nursery.start_soon(many, 1, writer)


async def malformed(to: Target) -> None:
    async def one() -> None:
        chance = random.Random()
        async with await to.client() as stream:
            packet = encode(
                Publish("a", b"x" * 50, 1, packet_id=1, properties={"user_property": [("a", "b")]}), V5
            )
            at = chance.randrange(len(packet))
            await stream.send_all(packet[:at] + chance.randbytes(20) + packet[at:])
            with trio.move_on_after(1):
                await swallow(stream)

    await many(WORKERS, one)


async def flood(to: Target) -> None:
    """QoS 0 as fast as it is agreed upon, to a subscriber that reads."""

    async def one() -> None:
        async with await to.client() as reader, await to.client() as stream, trio.open_nursery() as nursery:
            await send(reader, V5, Subscribe(1, [RequestedSubscription("f")]))
            nursery.start_soon(swallow, reader)
            nursery.start_soon(swallow, stream)
            chunk = encode(Publish("f", b"x" * 1_000), V5) * 50
            began, sent = trio.current_time(), 0
            while True:
                await stream.send_all(chunk)
                sent += len(chunk)
                await trio.sleep_until(began + sent / RATE)

    await many(1, one)


async def passwords(to: Target) -> None:
    async def one() -> None:
        async with await to.client(username="alice", password=b"wrong") as stream:
            await swallow(stream)

    await many(4 * WORKERS, one)


async def stalled_upgrades(to: Target) -> None:
    """Requests for a WebSocket that never end, and frames that never end."""
    request = (
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        b"Sec-WebSocket-Protocol: mqtt\r\n"
    )

    async def one() -> None:
        async with await to.dial(to.websocket) as stream:
            await stream.send_all(request)
            await slowly(stream, b"X-Slow: " + b"x" * 9_000)

    async def frame() -> None:
        async with await to.dial(to.websocket) as stream:
            await stream.send_all(request + b"\r\n\x82\xff\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00")
            await slowly(stream, b"x" * 9_000)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(many, HELD // 2, one)
        nursery.start_soon(many, HELD // 4, frame)


ATTACKS = {
    attack.__name__: attack
    for attack in (
        *(slow_connects, slow_packets, half_open, connections, subscriptions, wildcards, retained),
        *(sessions, never_released, never_reading, malformed, flood, passwords, stalled_upgrades),
    )
}


async def attack(attacks: Mapping[str, Attack], arguments: list[str]) -> None:
    """Attack in all the ways that the command line names, at once."""
    _, seconds, *rest = arguments
    with trio.move_on_after(float(seconds)):
        async with trio.open_nursery() as nursery:
            for name in rest[3:]:
                nursery.start_soon(attacks[name], Target(*map(int, rest[:3])))


if __name__ == "__main__":
    trio.run(attack, ATTACKS, sys.argv)
