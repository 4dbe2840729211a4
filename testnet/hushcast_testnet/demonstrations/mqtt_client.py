"""A small MQTT client, for demonstrations: connects, subscribes, publishes at QoS 1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from hushcast_protocol.mqtt.codec import Decoder, encode
from hushcast_protocol.mqtt.limits import LARGEST_PACKET
from hushcast_protocol.mqtt.packets import (
    V5,
    ConnAck,
    Connect,
    Packet,
    PubAck,
    Publish,
    RequestedSubscription,
    SubAck,
    Subscribe,
)
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.streams import LOOPBACK

PacketT = TypeVar("PacketT")


class MqttClient:
    """One connection to a gateway; use it from one task."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._decoder = Decoder(LARGEST_PACKET, of_server=True)
        self._packets: list[Packet] = []
        self._last = 0

    async def subscribe(self, wanted: str) -> None:
        """Subscribe at QoS 1; raise `TransportError` where that is refused."""
        await self._send(Subscribe(self._next_id(), [RequestedSubscription(wanted, 1)]))
        answer = await self.next(SubAck)
        if answer.reasons[0] >= 0x80:
            raise TransportError(f"the gateway refused a subscription with {answer.reasons[0]:#x}")

    async def publish(self, topic: str, payload: bytes) -> None:
        """Publish at QoS 1; return when the gateway has acknowledged."""
        await self._send(Publish(topic, payload, 1, packet_id=self._next_id()))
        answer = await self.next(PubAck)
        if answer.reason >= 0x80:
            raise TransportError(f"the gateway refused a message with {answer.reason:#x}")

    async def message(self) -> Publish:
        """Return the next message, acknowledged."""
        packet = await self.next(Publish)
        if packet.qos:
            await self._send(PubAck(packet.packet_id))
        return packet

    async def _send(self, packet: Packet) -> None:
        await self._stream.send_all(encode(packet, V5))

    async def next(self, kind: type[PacketT]) -> PacketT:
        """Return the next packet of a kind, passing over others; raise `TransportError` at the end."""
        while True:
            while not self._packets:
                data = await self._stream.receive_some()
                if not data:
                    raise TransportError("the gateway closed the connection")
                self._packets += self._decoder.feed(bytes(data))
            packet = self._packets.pop(0)
            if isinstance(packet, kind):
                return packet

    def _next_id(self) -> int:
        self._last += 1
        return self._last


@asynccontextmanager
async def connect_to(port: int) -> AsyncIterator[MqttClient]:
    """Connect to the gateway at a port of this machine; raise `TransportError` where it refuses."""
    async with await trio.open_tcp_stream(LOOPBACK, port) as stream:
        client = MqttClient(stream)
        await stream.send_all(encode(Connect(V5, ""), V5))
        answer = await client.next(ConnAck)
        if answer.reason:
            raise TransportError(f"the gateway refused a client with {answer.reason:#x}")
        yield client
