"""Home Assistant and Zigbee2MQTT as they speak to a broker, by what was recorded of both."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio
from memory_gateway import Client, Gateway

from hushcast_protocol.mqtt.wire.packets import (
    V311,
    PubAck,
    Publish,
    RequestedSubscription,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
    Will,
)

RECORDED: dict[str, Any] = tomllib.loads((Path(__file__).parent / "home_assistant.toml").read_text())
HA, ZIGBEE = RECORDED["home_assistant"], RECORDED["zigbee2mqtt"]
ENTITIES = {one["of"]: one for one in RECORDED["entity"]}
LISTENS = 0.2  # seconds that Zigbee2MQTT listens to what is retained; five in truth


def devices(count: int) -> list[tuple[str, dict[str, str]]]:
    """Names with what each is, lamps and sensors by turns."""
    kinds = [*ENTITIES.values()]
    return [(f"{kinds[n % 2]['of']}_{n}", kinds[n % 2]) for n in range(count)]


def of(text: str, name: str) -> str:
    return text.replace("NAME", name)


class Program:
    """A program of a house, connected to its gateway; `heard` is the last that came to each topic."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.heard: dict[str, str] = {}
        self.came: list[Publish] = []
        self._ids = 0
        self._granted: list[int] = []
        self._open: dict[int, trio.Event] = {}

    async def follow(self) -> None:
        """Take what comes, until the connection ends."""
        with suppress(trio.ClosedResourceError):
            await self._follow()

    async def _follow(self) -> None:
        while (packet := await self.client.next()) is not None:
            match packet:
                case Publish():
                    self.came.append(packet)
                    self.heard[packet.topic] = packet.payload.decode()
                    if packet.qos:
                        await self.client.send(PubAck(packet.packet_id))
                case SubAck():
                    self._granted += packet.reasons
                    self._open.pop(packet.packet_id).set()
                case PubAck() | UnsubAck():
                    self._open.pop(packet.packet_id).set()

    async def subscribe(self, *wanted: str) -> None:
        """Subscribe as both do, at QoS 0; all of it must be granted."""
        await self._asked(Subscribe(self._next(), [RequestedSubscription(one) for one in wanted]))
        assert max(self._granted) < 0x80

    async def unsubscribe(self, wanted: str) -> None:
        await self._asked(Unsubscribe(self._next(), [wanted]))

    async def say(self, topic: str, payload: str, qos: int = 0, retain: bool = False) -> None:
        packet = Publish(topic, payload.encode(), qos, retain, packet_id=self._next() if qos else 0)
        if qos:
            await self._asked(packet)
        else:
            await self.client.send(packet)

    async def until(self, reached: Callable[[], bool]) -> None:
        while not reached():  # noqa: ASYNC110 - `follow` hears it
            await trio.sleep(0.01)

    def _next(self) -> int:
        self._ids = self._ids % 65_535 + 1
        return self._ids

    async def _asked(self, packet: Any) -> None:
        answered = self._open[packet.packet_id] = trio.Event()
        await self.client.send(packet)
        await answered.wait()


async def connected(
    gateway: Gateway, nursery: trio.Nursery, name: str, will: tuple[str, str, int, bool]
) -> Program:
    topic, payload, qos, retain = will
    client = await gateway.connect(name, V311, will=Will(topic, payload.encode(), qos, retain))
    program = Program(client)
    nursery.start_soon(program.follow)
    return program


async def home_assistant(
    gateway: Gateway, nursery: trio.Nursery, found: list[tuple[str, dict[str, str]]]
) -> Program:
    """Start one that subscribes to discovery, says that it is there, and knows these entities of before."""
    program = await connected(gateway, nursery, "home assistant", (HA["status"], "offline", 0, False))
    await program.subscribe(*(one.replace("KIND", kind) for one in HA["discovery"] for kind in HA["kinds"]))
    await entities_known(program, found)
    await program.say(HA["status"], "online")
    return program


async def entities_known(program: Program, found: list[tuple[str, dict[str, str]]]) -> None:
    """Subscribe to what the discovery of entities names."""
    for name, _ in found:
        await program.subscribe(ZIGBEE["bridge"], of(ZIGBEE["availability"], name), of(ZIGBEE["state"], name))


async def zigbee2mqtt(
    gateway: Gateway, nursery: trio.Nursery, has: list[tuple[str, dict[str, str]]]
) -> Program:
    """Start one: it publishes of discovery what its gateway does not retain as it would say it."""
    will = ZIGBEE["bridge"], ZIGBEE["offline"], 1, True
    program = await connected(gateway, nursery, "zigbee2mqtt", will)
    await program.say(ZIGBEE["bridge"], ZIGBEE["online"], 1, True)
    await program.subscribe(*ZIGBEE["wants"])
    await program.subscribe("homeassistant/#")
    await trio.sleep(LISTENS)
    await program.unsubscribe("homeassistant/#")
    for name, one in has:
        topic, said = of(one["config"], name), of(one["said"], name)
        if program.heard.get(topic) != said:
            await program.say(topic, said, 1, True)
        await program.say(of(ZIGBEE["availability"], name), ZIGBEE["online"], 1, True)
        await program.say(of(ZIGBEE["state"], name), '{"state":"OFF","temperature":21.5}')
    return program
