"""A request as a stream of MQTT: what the broker's server reads of it and writes to it.

So a request is a client like another, at the same server: let in, refused, bounded and disconnected where
clients of MQTT are. The server's writes become answers at once: what an HTTP client does not read is not
written, and its deadline is the server's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from hushcast_gateway.http.http_connection import WRITE_WITHIN, HttpConnection
from hushcast_protocol.http.exchanges import (
    BodyWanted,
    HttpAnswer,
    HttpExchange,
    HttpStep,
    PublishExchange,
    StreamBegin,
    StreamEnd,
    StreamExchange,
    StreamPart,
)
from hushcast_protocol.http.refusals import HttpRefusal
from hushcast_protocol.mqtt.limits import KEEP_ALIVE, LARGEST_PACKET
from hushcast_protocol.mqtt.reason_codes import PacketError
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import V5

SIGN_OF_LIFE = KEEP_ALIVE * 0.75  # seconds between two signs of life in a stream; as ntfy's

Clock = Callable[[], float]
"""Unix time in seconds."""


class HttpStream(trio.abc.Stream):
    """One exchange over a connection."""

    def __init__(self, connection: HttpConnection, exchange: HttpExchange, clock: Clock) -> None:
        self._connection = connection
        self._exchange = exchange
        self._clock = clock
        self._decoder = Decoder(LARGEST_PACKET, of_server=True)
        self._outgoing: list[bytes] = []
        self._wanted: int | None = None
        self._has_begun = self._is_cut = False
        self._waiting = trio.CancelScope()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return packets of the request, nothing once it is over or its client gone."""
        await trio.lowlevel.checkpoint()
        if not self._has_begun:
            self._has_begun = True
            await self._do(self._exchange.begin())
        while not self._outgoing:
            if self._exchange.is_over or self._is_cut:
                return b""
            if self._wanted is not None and isinstance(self._exchange, PublishExchange):
                await self._read_body(self._exchange, self._wanted)
            else:
                await self._wait()
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Take packets of the server's, and answer the client what they mean."""
        try:
            packets = self._decoder.feed(data)
        except PacketError:
            raise AssertionError("the server's own packets") from None
        now = int(self._clock())
        await self._do(step for packet in packets for step in self._exchange.heard(packet, now))
        if self._outgoing or self._wanted is not None or self._exchange.is_over:
            self._waiting.cancel()

    async def wait_send_all_might_not_block(self) -> None:
        """Not wait: what can be written is known when it is."""
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """End it; the connection stays, for what is still to be said."""
        self._is_cut = True
        await trio.lowlevel.checkpoint()

    async def finish(self) -> None:
        """Answer a client of which the server said nothing more, if it takes that in time."""
        with trio.move_on_after(WRITE_WITHIN):
            await self._do(self._exchange.cut())
            return
        raise trio.BrokenResourceError("the client does not read")

    async def _wait(self) -> None:
        """Wait for packets to send; in a stream for its client to leave, or the next sign of life, too."""
        if not isinstance(self._exchange, StreamExchange):
            with trio.CancelScope() as self._waiting:
                await trio.sleep_forever()
            return
        deadline = trio.current_time() + SIGN_OF_LIFE
        with trio.CancelScope(deadline=deadline) as self._waiting:
            self._is_cut = not await self._connection.watch()
        if self._waiting.cancelled_caught and trio.current_time() >= deadline:
            await self._do(self._exchange.keep_alive())

    async def _read_body(self, exchange: PublishExchange, most: int) -> None:
        self._wanted = None
        try:
            steps = exchange.body(await self._connection.body(most))
        except HttpRefusal as refusal:
            steps = exchange.refused(refusal)
        except trio.BrokenResourceError:
            self._is_cut = True
            return
        await self._do(steps)

    async def _do(self, steps: Iterable[HttpStep]) -> None:
        """Do what an exchange says; parts of a stream go out together."""
        parts: list[bytes] = []
        for step in steps:
            if isinstance(step, StreamPart):
                parts.append(step.data)
                continue
            if parts:
                await self._connection.stream(parts)
                parts = []
            await self._do_one(step)
        if parts:
            await self._connection.stream(parts)

    async def _do_one(self, step: HttpStep) -> None:
        match step:
            case HttpAnswer():
                await self._connection.answer(step.status, step.body, step.content_type)
            case StreamBegin():
                await self._connection.begin(step.content_type)
                self._waiting.cancel()  # for what comes now, which may be frames
            case StreamEnd():
                await self._connection.end()
            case BodyWanted():
                self._wanted = step.most
            case StreamPart():
                raise AssertionError("parts are done together")
            case _:
                self._outgoing.append(encode(step, V5))
