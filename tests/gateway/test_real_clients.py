"""One client that others wrote, over a real socket: paho-mqtt, in both versions."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import paho.mqtt.client as paho
import pytest
import trio
from memory_gateway import running

WITHIN = 20.0  # seconds; it takes a fraction of one


@asynccontextmanager
async def listening() -> AsyncIterator[int]:
    """A gateway on a port of this machine."""
    async with running() as gateway, trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, gateway.server.serve, 0)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


def exchange(port: int, version: int) -> list[tuple[str, int, bytes]]:
    """Subscribe, publish to oneself in each QoS, and return what came."""
    found: list[tuple[str, int, bytes]] = []
    subscribed, done = threading.Event(), threading.Event()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="paho", protocol=version)

    def received(client: paho.Client, data: object, message: paho.MQTTMessage) -> None:
        found.append((message.topic, message.qos, message.payload))
        if len(found) == 3:
            done.set()

    client.on_connect = lambda *_: client.subscribe("house/#", 2)
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_message = received
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        assert subscribed.wait(WITHIN)
        for qos in range(3):
            client.publish(f"house/{qos}", b"x" * 1_000 * qos, qos).wait_for_publish(WITHIN)
        assert done.wait(WITHIN)
    finally:
        client.disconnect()
        client.loop_stop()
    return found


@pytest.mark.parametrize("version", [paho.MQTTv311, paho.MQTTv5])
async def test_paho(version: int) -> None:
    async with listening() as port:
        found = await trio.to_thread.run_sync(exchange, port, version)
    assert sorted(found) == [(f"house/{qos}", qos, b"x" * 1_000 * qos) for qos in range(3)]
