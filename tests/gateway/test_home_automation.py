"""Scenes of two houses with Home Assistant and Zigbee2MQTT: 300 entities, restarts, kills, who comes late."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
from home_automation import HA, ZIGBEE, Program, devices, entities_known, home_assistant, of, zigbee2mqtt
from houses import LINK, House, quick, until
from memory_gateway import Gateway
from operator_questions import ask

from hushcast_gateway.operators.questions import PurgeRequest
from hushcast_protocol.mqtt.wire.packets import Disconnect

MAPS = {"zigbee2mqtt/#": "home", "homeassistant/#": "home"}
ALL = devices(300)
FEW = devices(4)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


class Scene:
    """The house with devices, and the one with Home Assistant; each gateway may be killed."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.houses: list[House] = []
        self.gateways: list[Gateway] = []
        for name in ("devices", "assistant"):
            other = self.houses[0] if self.houses else None
            self.houses.append(House(folder / name, {"home": LINK}, MAPS, other, will_jitter=0, order_wait=1))
        self._ends = [trio.Event(), trio.Event()]
        self._gone = [trio.Event(), trio.Event()]

    async def start(self, *which: int) -> None:
        for one in which:
            await self.houses[one].daemon.start(self.nursery)
            self.gateways.append(await self.nursery.start(self._live, one))

    async def kill(self, which: int) -> None:
        self._ends[which].set()
        await self._gone[which].wait()
        self._ends[which], self._gone[which] = trio.Event(), trio.Event()
        self.gateways[which] = await self.nursery.start(self._live, which)

    async def routed(self, which: int) -> None:
        await until(lambda: any(one["ready"] for one in self.houses[which].daemon.service.subscriptions()))

    async def _live(self, which: int, task_status: trio.TaskStatus[Gateway]) -> None:
        async with AsyncExitStack() as stack:
            task_status.started(await stack.enter_async_context(self.houses[which].gateway()))
            await self._ends[which].wait()
        self._gone[which].set()


@asynccontextmanager
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    with trio.fail_after(240):  # against one that hangs: 300 entities take 15 s, and 60 beside other lanes
        async with trio.open_nursery() as nursery:
            yield Scene(tmp_path, nursery)
            nursery.cancel_scope.cancel()


def shows(assistant: Program, has: list[tuple[str, dict[str, str]]]) -> Callable[[], bool]:
    """Tell whether all entities are found, there, and have a state."""

    def found() -> bool:
        heard = assistant.heard
        return heard.get(ZIGBEE["bridge"]) == ZIGBEE["online"] and all(
            heard.get(of(one["config"], name)) == of(one["said"], name)
            and heard.get(of(ZIGBEE["availability"], name)) == ZIGBEE["online"]
            and of(ZIGBEE["state"], name) in heard
            for name, one in has
        )

    return found


async def both(scene: Scene, has: list[tuple[str, dict[str, str]]]) -> tuple[Program, Program]:
    await scene.start(0, 1)
    assistant = await home_assistant(scene.gateways[1], scene.nursery, has)
    await scene.routed(1)
    zigbee = await zigbee2mqtt(scene.gateways[0], scene.nursery, has)
    await scene.routed(0)
    await assistant.until(shows(assistant, has))
    return assistant, zigbee


@pytest.mark.slow
async def test_three_hundred_entities_are_found_shown_and_switched_and_nothing_is_refused(
    tmp_path: Path,
) -> None:
    """And who restarts Home Assistant has all of them again.

    Its gateway retains discovery and availability; states Zigbee2MQTT publishes when it hears.
    """
    async with scene(tmp_path) as one:
        assistant, zigbee = await both(one, ALL)
        config = [packet.topic for packet in assistant.came if packet.topic.endswith("/config")]
        assert len(config) == len(set(config)) == 300, "each comes once"
        lamp = of(ZIGBEE["set"], "lamp_0")
        await assistant.say(lamp, '{"state":"ON"}')
        await zigbee.until(lambda: zigbee.heard.get(lamp) == '{"state":"ON"}')
        await assistant.client.send(Disconnect())
        zigbee.heard.pop(HA["status"], None)
        again = await home_assistant(one.gateways[1], one.nursery, ALL)
        await zigbee.until(lambda: zigbee.heard.get(HA["status"]) == "online")
        for name, _ in ALL:
            await zigbee.say(of(ZIGBEE["state"], name), '{"state":"OFF"}')
        await again.until(shows(again, ALL))
        assert all(packet.retain for packet in again.came if packet.topic.endswith("/config"))
        for gateway in one.gateways:
            refused = {name for name, count in gateway.broker.counts.items() if count}
            assert not [name for name in refused if "drop" in name or "full" in name]


@pytest.mark.parametrize("killed", [0, 1], ids=["of the devices", "of home assistant"])
async def test_a_gateway_that_is_killed_leaves_everything_as_it_was(tmp_path: Path, killed: int) -> None:
    async with scene(tmp_path) as one:
        assistant, zigbee = await both(one, FEW)
        await one.kill(killed)
        if killed:
            assistant = await home_assistant(one.gateways[1], one.nursery, FEW)
            await zigbee.until(lambda: zigbee.heard.get(HA["status"]) == "online")
            for name, _ in FEW:
                await zigbee.say(of(ZIGBEE["state"], name), '{"state":"OFF"}')
        else:
            zigbee = await zigbee2mqtt(one.gateways[0], one.nursery, FEW)
        await assistant.until(shows(assistant, FEW))
        lamp = of(ZIGBEE["set"], "lamp_0")
        await assistant.say(lamp, '{"state":"ON"}')
        await zigbee.until(lambda: zigbee.heard.get(lamp) == '{"state":"ON"}')


async def test_zigbee2mqtt_that_dies_is_missed_and_comes_back(tmp_path: Path) -> None:
    async with scene(tmp_path) as one:
        assistant, zigbee = await both(one, FEW)
        await zigbee.client.stream.aclose()
        await assistant.until(lambda: assistant.heard[ZIGBEE["bridge"]] == ZIGBEE["offline"])
        await zigbee2mqtt(one.gateways[0], one.nursery, FEW)
        await assistant.until(shows(assistant, FEW))


async def test_a_house_that_comes_late_has_nothing_by_a_restart_and_all_after_a_purge(tmp_path: Path) -> None:
    """A start of Zigbee2MQTT publishes what is not retained already, and a birth no discovery at all."""
    async with scene(tmp_path) as one:
        await one.start(0)
        zigbee = await zigbee2mqtt(one.gateways[0], one.nursery, FEW)
        await one.start(1)
        late = await home_assistant(one.gateways[1], one.nursery, [])
        await one.routed(1)
        await zigbee.client.send(Disconnect())
        zigbee = await zigbee2mqtt(one.gateways[0], one.nursery, FEW)
        await late.until(
            lambda: ZIGBEE["bridge"] in late.heard or one.houses[1].counters.as_dict()["network_arrived"] > 0
        )
        assert not [topic for topic in late.heard if topic.endswith("/config")]
        await zigbee.client.send(Disconnect())
        await ask(one.gateways[0], PurgeRequest(filter="homeassistant/#"))
        await zigbee2mqtt(one.gateways[0], one.nursery, FEW)
        await entities_known(late, FEW)
        # Of each it hears first that what was retained is deleted.
        found = {of(entity["config"], name): of(entity["said"], name) for name, entity in FEW}
        await late.until(lambda: found.items() <= late.heard.items())
        assert {topic for topic in late.heard if topic.endswith("/config")} == found.keys()
