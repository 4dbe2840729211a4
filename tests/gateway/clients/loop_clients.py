"""aiomqtt and gmqtt, which live in asyncio's loop: one in a thread beside the tests."""

from __future__ import annotations

import asyncio
import functools
import socket
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import aiomqtt
import gmqtt
from mqtt_client import EXPIRY, WITHIN, Message, MqttClient
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

T = TypeVar("T")


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, WITHIN), _loop()).result()


def end_loop() -> None:
    """End the loop, so that nothing of it is left to the collector."""
    if _loop.cache_info().currsize:
        loop = _loop()
        loop.call_soon_threadsafe(loop.stop)
        while loop.is_running():
            threading.Event().wait(0.01)
        loop.close()
        _loop.cache_clear()


class AiomqttClient(MqttClient):
    def connect(self) -> None:
        in_loop(self._connect())

    async def _connect(self) -> None:
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = EXPIRY if self.lasting else 0
        will = self.will and aiomqtt.Will(self.will.topic, self.will.payload, self.will.qos, self.will.retain)
        self._client = aiomqtt.Client(
            "127.0.0.1",
            self.server.port,
            identifier=self.client_id,
            protocol=aiomqtt.ProtocolVersion.V5,
            clean_start=not self.lasting,
            properties=properties,
            will=will,
        )
        await self._client.__aenter__()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with suppress(aiomqtt.MqttError):  # the end of the connection
            async for one in self._client.messages:
                assert isinstance(one.payload, bytes)
                self._came.put(Message(one.topic.value, one.payload.decode(), one.qos, one.retain))

    def subscribe(self, wanted: str, qos: int) -> int:
        granted: Any = in_loop(self._client.subscribe(wanted, qos))
        return int(granted[0].value)

    def publish(self, topic: str, payload: str, qos: int = 0, retain: bool = False) -> None:
        in_loop(self._client.publish(topic, payload, qos, retain))

    def close(self) -> None:
        in_loop(self._end())

    def die(self) -> None:
        in_loop(self._end(broken=True))

    async def _end(self, broken: bool = False) -> None:
        if broken:
            under: Any = self._client._client.socket()
            under.shutdown(socket.SHUT_RDWR)
            await self._reading
        with suppress(aiomqtt.MqttError):
            await self._client.__aexit__(None, None, None)
        self._reading.cancel()


class GmqttClient(MqttClient):
    def connect(self) -> bool:
        return in_loop(self._connect())

    async def _connect(self) -> bool:
        will = self.will and gmqtt.Message(
            self.will.topic, self.will.payload, self.will.qos, self.will.retain
        )
        lasting = {"session_expiry_interval": EXPIRY} if self.lasting else {}
        self._client = gmqtt.Client(
            self.client_id, clean_session=not self.lasting, will_message=will, **lasting
        )
        # It compares with how often it failed: at 0 it would try once. -1 would be for ever.
        self._client.set_config({"reconnect_retries": -2})
        loop = asyncio.get_running_loop()
        connected: asyncio.Future[int] = loop.create_future()
        self._granted: asyncio.Queue[int] = asyncio.Queue()
        self._client.on_connect = lambda client, flags, code, properties: connected.set_result(flags)
        self._client.on_subscribe = lambda client, number, codes, properties: self._granted.put_nowait(
            codes[0]
        )
        self._client.on_message = self._on_message
        await self._client.connect("127.0.0.1", self.server.port, version=5)
        return bool(await connected & 1)

    def _on_message(self, client: Any, topic: str, payload: bytes, qos: int, properties: Any) -> int:
        self._came.put(Message(topic, payload.decode(), qos, bool(properties["retain"])))
        return 0

    def subscribe(self, wanted: str, qos: int) -> int:
        async def subscribe() -> int:
            self._client.subscribe(wanted, qos)
            return await self._granted.get()

        return in_loop(subscribe())

    def publish(self, topic: str, payload: str, qos: int = 0, retain: bool = False) -> None:
        async def publish() -> None:
            self._client.publish(topic, payload, qos, retain)
            await self._client._persistent_storage.wait_empty()  # it tells of no acknowledgement

        in_loop(publish())

    def close(self) -> None:
        in_loop(self._client.disconnect())

    def die(self) -> None:
        async def die() -> None:
            self._client._connection._transport.abort()
            await asyncio.sleep(0)

        in_loop(die())
