"""Houses: each a gateway, its daemon, and MQTT clients; one network between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_daemon import FakeDaemon
from memory_gateway import Client, Gateway, everybody, everything
from purposes_house import VOCABULARY

import hushcast
from hushcast_gateway.broker_state import open_broker
from hushcast_gateway.clients.server import Server
from hushcast_gateway.counters import GatewayCounters
from hushcast_gateway.network import daemon_link, network_reader
from hushcast_gateway.network.gateway_network import GatewayNetwork
from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.sections.purposes_section import PurposesOfUser
from hushcast_gateway.settings import (
    AliasSection,
    DaemonSection,
    GatewaySettings,
    MapSection,
    NetworkTopicsSection,
)
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.wire.packets import PubAck, Publish
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.store import MemoryStore

LINK = hushcast.new_link("the house", private=True)
SPLIT = hushcast.new_link("the house", ["room"], private=True)


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing longer than a test needs."""
    monkeypatch.setattr(network_reader, "BEGIN_WITHIN", 0.01)
    monkeypatch.setattr(network_reader, "LINGER", 0.2)
    monkeypatch.setattr(daemon_link, "AGAIN", 0.05)


async def until(reached: Callable[[], bool]) -> None:
    while not reached():  # noqa: ASYNC110
        await trio.sleep(0.01)


class House:
    """A gateway over a daemon; both may end and start again, each with what it had on disk."""

    def __init__(
        self, folder: Path, links: dict[str, str], maps: dict[str, str], other: House | None, **settings: Any
    ):
        folder.mkdir()
        label, purpose = settings.pop("label", None), settings.pop("purpose", None)
        plain = settings.pop("plain", False)
        self.daemon = FakeDaemon(folder / "s", network=other.daemon.network if other is not None else None)
        self.settings = GatewaySettings(
            daemon=DaemonSection(socket=str(folder / "s")),
            gateway=NetworkTopicsSection(
                alias=tuple(
                    AliasSection(name=name, link_file="/unused", label=label, purpose=purpose, plain=plain)
                    for name in links
                ),
                map=tuple(MapSection(from_=wanted, to=alias) for wanted, alias in maps.items()),
            ),
            **settings,
        )
        self.links = links
        self.store = MemoryStore()
        self.counters = GatewayCounters()
        self.network: GatewayNetwork

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[Gateway]:
        """Run the gateway for the block; the end is as sudden as a kill."""
        env = system_environment()
        section, anybody = self.settings.purposes, {"": PurposesOfUser(reserve=("#",))}
        ways = NetworkWays(self.settings.gateway, self.links)
        rules = None if section is None else Purposes(section, anybody, VOCABULARY, env.now, ways)
        self.network = network = GatewayNetwork(self.settings, ways, env, self.counters, rules)
        mqtt = MqttSettings(
            limits=self.settings.limits.as_protocol(),
            history=self.settings.history.topics,
            history_seconds=self.settings.history.hours * 3_600,
        )
        state = await open_broker(self.store, env, network, mqtt, rules, permissions_of=everything)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(state.run)
            nursery.start_soon(network.run, state, self.store)
            yield Gateway(state, Server(state, everybody), nursery)
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def houses(
    tmp_path: Path, maps: dict[str, str] | None = None, **settings: Any
) -> AsyncIterator[tuple[House, House, Gateway, Gateway]]:
    link = SPLIT if "label" in settings else LINK
    one = House(tmp_path / "one", {"home": link}, maps or {}, None, **settings)
    two = House(tmp_path / "two", {"home": link}, {}, one, label=settings.get("label"))
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery, AsyncExitStack() as gateways:
            for house in (one, two):
                await house.daemon.start(nursery)
            first = await gateways.enter_async_context(one.gateway())
            second = await gateways.enter_async_context(two.gateway())
            yield one, two, first, second
            nursery.cancel_scope.cancel()


async def listening(house: House, gateway: Gateway, wanted: str, **fields: Any) -> Client:
    """Return a client whose subscription has come to the network."""
    client = await gateway.connect("listener", **fields)
    await client.subscribe(wanted, 1)
    await until(
        lambda: (
            bool(house.daemon.service.subscriptions()) and house.daemon.service.subscriptions()[0]["ready"]
        )
    )
    return client


async def acknowledged(client: Client, packet: Publish) -> int:
    await client.send(packet)
    while not isinstance(answer := await client.next(), PubAck):
        assert answer is not None
    return answer.reason


def hold_answers(daemon: FakeDaemon, takes: bool = True) -> trio.Event:
    """Let a daemon say that it takes what is published no sooner than the event is set.

    It `takes` it before that, or with it.
    """
    take, answers = daemon.service.enqueue, trio.Event()

    async def enqueue(*given: Any, **named: Any) -> Any:
        if not takes:
            await answers.wait()
        taken = await take(*given, **named)
        await answers.wait()
        return taken

    daemon.service.enqueue = enqueue  # type: ignore[method-assign]
    return answers
