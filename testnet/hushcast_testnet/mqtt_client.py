"""A small MQTT client of version 5, for demonstrations and loads: says packets, and hears the answers."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from hushcast_protocol.mqtt.limits import LARGEST_PACKET
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import (
    NONE,
    V5,
    ConnAck,
    Connect,
    Packet,
    Properties,
    PubAck,
    Publish,
    RequestedSubscription,
    SubAck,
    Subscribe,
)
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint, open_endpoint

PacketT = TypeVar("PacketT")

_READ = 65_536  # bytes
_REFUSED = 0x80  # and above: a reason of the standard that refuses


class MqttClient:
    """One connection to a gateway; use it from one task. All raises `TransportError` at its end."""

    def __init__(self, stream: trio.abc.Stream, patience: float = math.inf) -> None:
        """`patience` is for how many seconds the gateway may say nothing while it is heard."""
        self._stream = stream
        self._patience = patience
        self._decoder = Decoder(LARGEST_PACKET, of_server=True)
        self._packets: deque[Packet] = deque()
        self._last = 0

    async def connect(self, client_id: str = "") -> None:
        """Say who it is; raise `TransportError` where that is refused."""
        await self.say(Connect(V5, client_id))
        check(await self.next(ConnAck), "a client")

    async def subscribe(self, wanted: str, qos: int = 1, properties: Properties = NONE) -> None:
        """Subscribe; raise `TransportError` where that is refused."""
        await self.say(Subscribe(self._next_id(), [RequestedSubscription(wanted, qos)], properties))
        check(await self.next(SubAck), "a subscription")

    async def publish(self, topic: str, payload: bytes, properties: Properties = NONE) -> None:
        """Publish at QoS 1; return when the gateway has acknowledged."""
        await self.say(Publish(topic, payload, 1, packet_id=self._next_id(), properties=properties))
        check(await self.next(PubAck), "a message")

    async def message(self) -> Publish:
        """Return the next message, acknowledged."""
        packet = await self.next(Publish)
        if packet.qos:
            await self.say(PubAck(packet.packet_id))
        return packet

    async def say(self, packet: Packet) -> None:
        """Send a packet."""
        try:
            await self._stream.send_all(encode(packet, V5))
        except trio.BrokenResourceError:
            raise TransportError("the gateway closed the connection") from None

    async def next(self, kind: type[PacketT]) -> PacketT:
        """Return the next packet of a kind, passing over others."""
        while True:
            while not self._packets:
                with trio.move_on_after(self._patience) as waiting:
                    data = await self._stream.receive_some(_READ)
                if waiting.cancelled_caught:
                    raise TransportError(f"the gateway said nothing for {self._patience:g} s")
                if not data:
                    raise TransportError("the gateway closed the connection")
                self._packets += self._decoder.feed(bytes(data))
            packet = self._packets.popleft()
            if isinstance(packet, kind):
                return packet

    def _next_id(self) -> int:
        self._last += 1
        return self._last


def check(answer: ConnAck | SubAck | PubAck, what: str) -> None:
    """Raise `TransportError` where an answer refuses something."""
    reason = max(answer.reasons) if isinstance(answer, SubAck) else answer.reason
    if reason >= _REFUSED:
        raise TransportError(
            f"the gateway refuses {what} ({reason:#x}): look at what its users may publish, subscribe to, "
            "reserve and claim, and at its bounds"
        )


@asynccontextmanager
async def connected_to(
    endpoint: Endpoint, client_id: str = "", patience: float = math.inf
) -> AsyncIterator[MqttClient]:
    """Connect to the gateway at a place of this machine; raise `TransportError` where it refuses."""
    try:
        opened = await open_endpoint(endpoint)
    except TransportError:
        raise TransportError(f"nothing answers at {endpoint}: start the gateway") from None
    async with opened as stream:
        client = MqttClient(stream, patience)
        await client.connect(client_id)
        yield client
