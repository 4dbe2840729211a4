"""A gateway's server over streams in memory, and clients that speak packets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import memory_stream_pair

from hushcast_gateway.broker_state import BrokerState, open_broker
from hushcast_gateway.clients.server import Authenticate, Server
from hushcast_gateway.purposes.rules import Purposes
from hushcast_protocol.mqtt.interfaces import OuterNetwork
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.topics.permissions import FullPermissions, PermissionsOf
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    ConnAck,
    Connect,
    Packet,
    Publish,
    RequestedSubscription,
    SubAck,
    Subscribe,
)
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore, Store


def everything(user: str, client_id: str) -> FullPermissions:
    """Let everybody's sessions on disk go on."""
    return FullPermissions(user)


async def everybody(packet: Connect, peer: object) -> FullPermissions:
    """Let everybody in, to do everything."""
    await trio.lowlevel.checkpoint()
    return FullPermissions()


class Client:
    """A client's end."""

    def __init__(self, stream: trio.StapledStream[Any, Any], version: int) -> None:
        self.stream = stream
        self.version = version
        self._decoder = Decoder(2**28, of_server=True)
        self._decoder.version = version
        self._packets: list[Packet] = []

    async def send(self, *packets: Packet) -> None:
        await self.stream.send_all(b"".join(encode(packet, self.version) for packet in packets))

    async def next(self) -> Packet | None:
        """Return the next packet; `None` at the end of the stream."""
        while not self._packets:
            data = await self.stream.receive_some()
            if not data:
                return None
            self._packets += self._decoder.feed(bytes(data))
        return self._packets.pop(0)

    async def subscribe(self, wanted: str, qos: int = 0) -> None:
        await self.send(Subscribe(1, [RequestedSubscription(wanted, qos)]))
        assert isinstance(await self.next(), SubAck)

    async def message(self) -> Publish:
        packet = await self.next()
        assert isinstance(packet, Publish), packet
        return packet


class Gateway:
    """A server that runs."""

    def __init__(self, state: BrokerState, server: Server, nursery: trio.Nursery) -> None:
        self.state = state
        self.broker = state.broker
        self.server = server
        self._nursery = nursery

    async def dial(self, version: int = V5) -> Client:
        """Open a stream to the server."""
        ours, theirs = memory_stream_pair()
        self._nursery.start_soon(self.server.serve, theirs)
        await trio.lowlevel.checkpoint()
        return Client(ours, version)

    async def connect(
        self, client_id: str = "a", version: int = V5, clean: bool = True, expiry: int = 0, **fields: Any
    ) -> Client:
        """Connect a client, which is accepted."""
        client = await self.dial(version)
        properties = fields.pop("properties", {})
        if expiry:
            properties = properties | {"session_expiry_interval": expiry}
        await client.send(Connect(version, client_id, clean, properties=properties, **fields))  # type: ignore[arg-type]
        packet = await client.next()
        assert isinstance(packet, ConnAck), packet
        assert packet.reason == 0
        return client


@asynccontextmanager
async def running(
    store: Store | None = None,
    authenticate: Authenticate = everybody,
    beyond: OuterNetwork | None = None,
    purposes: Purposes | None = None,
    permissions_of: PermissionsOf = everything,
    limits: MqttLimits | None = None,
    settings: MqttSettings | None = None,
    **options: Any,
) -> AsyncIterator[Gateway]:
    """Run a gateway for the block; the end is as sudden as a kill."""
    env = simulated_environment("gateway", 1_000_000.0)
    store = store or MemoryStore()
    settings = settings or MqttSettings(limits=limits or MqttLimits())
    state = await open_broker(store, env, beyond, settings, purposes, permissions_of=permissions_of)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(state.run)
        yield Gateway(state, Server(state, authenticate, **options), nursery)
        nursery.cancel_scope.cancel()
