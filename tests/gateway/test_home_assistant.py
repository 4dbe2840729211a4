"""Home Assistant and zigbee2mqtt in two houses, by their own topics: discovery, states, orders, wills."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from houses import House
from mqtt_client import Message, Server
from paho_client import PahoClient

import hushcast
from hushcast_gateway.network import network_reader

LINK = hushcast.new_link("two houses", private=True)
MAPS = {"zigbee2mqtt/#": "houses", "homeassistant/#": "houses"}
LAMP = "zigbee2mqtt/lamp"
DISCOVERY = Message(
    "homeassistant/light/0x01/light/config", '{"command_topic": "zigbee2mqtt/lamp/set"}', 1, True
)
BRIDGE = Message("zigbee2mqtt/bridge/state", '{"state":"online"}', 1, True)
BRIDGE_GONE = Message("zigbee2mqtt/bridge/state", '{"state":"offline"}', 1, True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_reader, "BEGIN_WITHIN", 0.01)


class Person:
    """A client of paho, whose waiting is done in threads."""

    def __init__(self, client: PahoClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *given, **named: trio.to_thread.run_sync(
            partial(getattr(self._client, name), *given, **named)
        )

    async def messages(self, count: int) -> list[Message]:
        return [await self.message() for _ in range(count)]


@asynccontextmanager
async def served(house: House, serve: trio.Nursery) -> AsyncIterator[Server]:
    async with house.gateway() as gateway:
        listeners = await serve.start(trio.serve_tcp, gateway.server.serve, 0)
        yield Server(listeners[0].socket.getsockname()[1])


@asynccontextmanager
async def two_houses(folder: Path) -> AsyncIterator[tuple[tuple[House, House], Server, Server]]:
    """The house with the lamp, and the other, and how clients reach both."""
    lamps = House(folder / "lamps", {"houses": LINK}, MAPS, None, will_jitter=0, order_wait=1)
    other = House(folder / "other", {"houses": LINK}, MAPS, lamps, order_wait=1)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, AsyncExitStack() as gateways:
            for house in (lamps, other):
                await house.daemon.start(nursery)
            first = await gateways.enter_async_context(served(lamps, nursery))
            second = await gateways.enter_async_context(served(other, nursery))
            yield (lamps, other), first, second
            nursery.cancel_scope.cancel()


async def connected(server: Server, name: str, *wanted: str, will: Message | None = None) -> Person:
    person = Person(PahoClient(4, server, name, will=will))
    await person.connect()
    for each in wanted:
        assert await person.subscribe(each, 1) == 1
    return person


async def installed(houses: tuple[House, House]) -> None:
    """Return when the network routes to both houses."""
    for house in houses:
        while not any(one["ready"] for one in house.daemon.service.subscriptions()):  # noqa: ASYNC110
            await trio.sleep(0.01)


async def test_a_lamp_is_found_shown_switched_and_missed_in_the_other_house(tmp_path: Path) -> None:
    async with two_houses(tmp_path) as (both, first, second):
        assistant = await connected(second, "assistant", "homeassistant/#", LAMP, BRIDGE.topic)
        zigbee = await connected(first, "zigbee2mqtt", "zigbee2mqtt/+/set", will=BRIDGE_GONE)
        await installed(both)
        # As zigbee2mqtt does when it starts, all retained: its state, a device's discovery, its last state.
        for one in (BRIDGE, DISCOVERY, Message(LAMP, '{"state":"OFF"}', 0, True)):
            await zigbee.publish(one.topic, one.payload, one.qos, one.retain)
        found = await assistant.messages(3)
        assert {(one.topic, one.payload) for one in found} == {
            (BRIDGE.topic, BRIDGE.payload),
            (DISCOVERY.topic, DISCOVERY.payload),
            (LAMP, '{"state":"OFF"}'),
        }
        await assistant.publish(f"{LAMP}/set", '{"state":"ON"}')
        assert await zigbee.message() == Message(f"{LAMP}/set", '{"state":"ON"}', 0)
        restarted = await connected(second, "assistant again", "homeassistant/#", BRIDGE.topic)
        assert set(await restarted.messages(2)) == {DISCOVERY, BRIDGE}, "kept by the gateway of its house"
        await zigbee.die()
        assert (await assistant.message()).payload == BRIDGE_GONE.payload
        assert (await restarted.message()).payload == BRIDGE_GONE.payload
        late = await connected(second, "a later one", BRIDGE.topic)
        assert await late.message() == BRIDGE_GONE
        for person in (assistant, restarted, late):
            await person.close()


async def test_a_house_that_comes_later_has_discovery_when_it_is_published_again(tmp_path: Path) -> None:
    """Home Assistant asks for it: it publishes `online` at its birth, which zigbee2mqtt answers so."""
    async with two_houses(tmp_path) as (both, first, second):
        zigbee = await connected(first, "zigbee2mqtt", "homeassistant/status")
        await zigbee.publish(DISCOVERY.topic, DISCOVERY.payload, 1, True)
        here = await connected(first, "assistant of the same house", "homeassistant/light/#")
        assert await here.message() == DISCOVERY, "its own gateway keeps it"
        assistant = await connected(second, "assistant", "homeassistant/light/#")
        await installed(both)
        await assistant.publish("homeassistant/status", "online")
        assert (await zigbee.message()).payload == "online"
        await zigbee.publish(DISCOVERY.topic, DISCOVERY.payload, 1, True)
        assert await assistant.message() == Message(DISCOVERY.topic, DISCOVERY.payload, 1), "nothing before"
        for person in (zigbee, here, assistant):
            await person.close()
