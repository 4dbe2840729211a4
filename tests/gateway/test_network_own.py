"""What a house publishes: it comes back to it from the network, and is known however slow its daemon is."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from houses import acknowledged, hold_answers, houses, listening, quick, until
from keyed_houses import POSITION, keyed, network
from purposes_house import Reader

from hushcast_protocol.mqtt.wire.packets import PubAck, Publish, Will


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


@pytest.mark.parametrize("topic", ["lamps/1", "hush/home/1"])
async def test_what_is_back_before_the_daemon_has_answered_is_not_given_again(
    tmp_path: Path, topic: str
) -> None:
    async with houses(tmp_path, {"lamps/#": "home"}) as (one, _, first, second):
        reader = await listening(one, first, topic)
        answers = hold_answers(one.daemon)
        writer = await first.connect("writer")
        await writer.send(Publish(topic, b"on", 1, packet_id=1))
        await until(lambda: one.counters.as_dict()["network_arrived"] == 1)
        answers.set()
        assert await writer.next() == PubAck(1)
        other = await second.connect("other")
        await acknowledged(
            other, Publish(f"hush/home/{topic.removeprefix('hush/home/')}", b"off", 1, packet_id=1)
        )
        assert [(await reader.message()).payload for _ in range(2)] == [b"on", b"off"]


async def test_what_the_daemon_has_taken_is_not_published_again_where_rules_change(tmp_path: Path) -> None:
    async with network(tmp_path, keyed(tmp_path / "f", ()), keyed(tmp_path / "o", ["operations"])) as (
        one,
        two,
    ):
        dashboard = await two.reads("dashboard")
        car = await one.connect("car")
        answers = hold_answers(one.daemon)
        await car.client.send(Publish(POSITION, b"here", 1, packet_id=1))
        await until(lambda: two.counters.as_dict()["network_arrived"] == 1)
        owner = Reader(await one.gateway.connect("owner", username="car"))
        assert await owner.reserve("home/#", "operations") == 0
        await trio.sleep(0.1)
        answers.set()
        assert await car.until(PubAck) == PubAck(1)
        assert len(one.daemon.published) == 1
        assert await dashboard.got() == [b"here"]


async def test_a_will_that_the_daemon_has_taken_does_not_undo_what_its_client_says_when_it_is_back(
    tmp_path: Path,
) -> None:
    topic = "hush/home/state"
    async with houses(tmp_path, will_jitter=0) as (one, _, first, _):
        await listening(one, first, "hush/home/#")
        one.daemon.network.receipts = trio.Event()
        answers = hold_answers(one.daemon)
        mortal = await first.connect("mortal", will=Will(topic, b"offline", 1, True))
        await mortal.stream.aclose()
        await until(lambda: len(one.daemon.service.outbox()) == 1)
        back = await first.connect("mortal")
        await back.send(Publish(topic, b"online", 1, True, packet_id=1))
        await until(lambda: len(one.daemon.service.outbox()) == 2)
        answers.set()
        assert await back.next() == PubAck(1)
        one.daemon.network.receipts.set()
        await until(lambda: one.counters.as_dict()["network_arrived"] == 2)
        await trio.sleep(0.1)
        kept = first.broker.retained_at(topic)
        assert kept is not None
        assert kept.payload == b"online"
