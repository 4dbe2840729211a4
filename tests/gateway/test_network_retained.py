"""Retained messages whose topics travel: what is kept in other houses, and what is sent again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from houses import LINK, House, acknowledged, hold_answers, houses, listening, quick, until

from hushcast_protocol.mqtt.wire.packets import PubAck, Publish, RequestedSubscription, SubAck, Subscribe
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


async def test_properties_and_the_retain_flag_travel_inside_the_seal(tmp_path: Path) -> None:
    properties = {"content_type": "text/plain", "correlation_data": b"\0", "user_property": [("a", "b")]}
    async with houses(tmp_path) as (one, two, first, second):
        await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        await writer.send(Publish("hush/home/a", b"kept", 1, True, packet_id=1, properties=properties))  # type: ignore[arg-type]
        await until(lambda: second.broker.retained == 1)
        late = await second.connect("late")
        await late.send(Subscribe(1, [RequestedSubscription("hush/home/a", 1)]))
        assert isinstance(await late.next(), SubAck)
        message = await late.message()
        assert (message.payload, message.retain, message.properties) == (b"kept", True, properties)
        assert first.broker.retained == 1, "and here"
        assert b"text/plain" not in b"".join(m.body for m in one.daemon.network.messages.values())


async def test_what_is_retained_here_travels_again_for_who_comes_later(tmp_path: Path) -> None:
    async with houses(tmp_path, refresh_retained=1) as (one, _, first, _):
        writer = await first.connect("writer")
        for payload in (b"old", b"new"):
            await acknowledged(writer, Publish("hush/home/a", payload, 1, True, packet_id=1))
        await acknowledged(writer, Publish("hush/home/gone", b"x", 1, True, packet_id=1))
        await acknowledged(writer, Publish("hush/home/gone", b"", 1, True, packet_id=1))
        await until(lambda: set(one.store._records["gateway-refreshed"]) == {b"hush/home/a"})


async def test_what_travels_again_gives_way_to_what_is_newer(tmp_path: Path) -> None:
    topic = "hush/home/a"
    async with houses(tmp_path, refresh_retained=1) as (one, two, first, second):
        await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        await acknowledged(writer, Publish(topic, b"old", 1, True, packet_id=1))
        old = first.broker.retained_at(topic)
        assert old is not None
        await until(lambda: second.broker.retained_at(topic) is not None)
        one.daemon.stop()
        one.network._send_again(old)
        await trio.sleep(0.2)
        await writer.send(Publish(topic, b"new", 1, True, packet_id=2))
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            assert await writer.next() == PubAck(2)
            await trio.sleep(0.3)
            assert len(one.daemon.network.messages) == 2, "the first, and what is newer"
            kept = second.broker.retained_at(topic)
            assert kept is not None
            assert kept.payload == b"new"
            nursery.cancel_scope.cancel()


class SlowDisk(MemoryStore):
    """A store that reads what travels again once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = trio.Event()

    async def scan(self, kind: str, *given: Any, **named: Any) -> list[tuple[bytes, bytes]]:
        if kind == "gateway-refreshed":
            await self.turns.wait()
        return await super().scan(kind, *given, **named)


async def test_what_another_house_retains_while_the_disk_is_read_is_that_ones_to_refresh(
    tmp_path: Path,
) -> None:
    topic = "hush/home/a"
    one = House(tmp_path / "one", {"home": LINK}, {}, None, refresh_retained=1)
    two = House(tmp_path / "two", {"home": LINK}, {}, one)
    one.store = disk = SlowDisk()
    disk.write_soon(Change("gateway-refreshed", topic.encode(), b"\0"))  # by an earlier run
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for house in (one, two):
                await house.daemon.start(nursery)
            async with one.gateway() as first, two.gateway() as second:
                await (await first.connect()).subscribe("hush/home/#", 1)
                writer = await second.connect("writer")
                await one.daemon.hold(LINK)
                await acknowledged(writer, Publish(topic, b"theirs", 1, True, packet_id=1))
                with trio.move_on_after(0.3):
                    await until(lambda: first.broker.retained == 1)
                disk.turns.set()
                await until(lambda: first.broker.retained == 1)
                assert disk._records["gateway-refreshed"] == {}
            nursery.cancel_scope.cancel()


async def test_what_another_house_retains_before_the_daemon_has_answered_is_that_ones_to_refresh(
    tmp_path: Path,
) -> None:
    topic = "lamps/1"
    async with houses(tmp_path, {"lamps/#": "home"}, refresh_retained=1) as (one, _, first, second):
        await listening(one, first, topic)
        answers = hold_answers(one.daemon, takes=False)
        lamp = await first.connect("lamp")
        await lamp.send(Publish(topic, b"ours", 1, True, packet_id=1))
        await until(lambda: first.broker.retained_at(topic) is not None)
        switch = await second.connect("switch")
        await acknowledged(switch, Publish(f"hush/home/{topic}", b"theirs", 1, True, packet_id=1))
        await until(lambda: one.counters.as_dict()["network_arrived"] == 1)
        answers.set()
        assert await lamp.next() == PubAck(1)
        kept = first.broker.retained_at(topic)
        assert kept is not None
        assert kept.payload == b"theirs"
        assert topic.encode() not in one.store._records.get("gateway-refreshed", {})
