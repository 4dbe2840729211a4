"""Retained messages whose topics travel: what is kept in other houses, and what is sent again."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from houses import acknowledged, houses, listening, quick, until

from hushcast_protocol.mqtt.packets import PubAck, Publish, SubAck, Subscribe, Subscription


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
        await late.send(Subscribe(1, [Subscription("hush/home/a", 1)]))
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
