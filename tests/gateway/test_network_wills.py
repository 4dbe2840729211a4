"""Wills whose topics travel: when they go, and to what they give way."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from houses import acknowledged, houses, listening, quick, until

from hushcast_protocol.mqtt.wire.packets import PubAck, Publish, Will


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


async def test_a_will_travels_a_while_later(tmp_path: Path) -> None:
    async with houses(tmp_path, will_jitter=1) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        here = await first.connect("here")
        await here.subscribe("hush/home/#")
        mortal = await first.connect("mortal", will=Will("hush/home/will", b"gone", 1))
        await mortal.stream.aclose()
        assert (await here.message()).payload == b"gone"
        message = await reader.message()
        assert (message.topic, message.payload) == ("hush/home/will", b"gone")


async def test_a_will_that_waits_does_not_undo_what_its_client_says_when_it_is_back(tmp_path: Path) -> None:
    async with houses(tmp_path, will_jitter=1) as (one, two, first, second):
        await listening(two, second, "hush/home/#")
        for _ in range(5):
            mortal = await first.connect("mortal", will=Will("hush/home/state", b"offline", 1, True))
            await mortal.stream.aclose()
        back = await first.connect("mortal")
        await acknowledged(back, Publish("hush/home/state", b"online", 1, True, packet_id=1))
        await trio.sleep(1.2)
        for house, gateway in ((one, first), (two, second)):
            kept = gateway.broker.retained_at("hush/home/state")
            assert kept is not None
            assert kept.payload == b"online", house.daemon.socket


async def test_a_will_that_waits_for_the_daemon_gives_way_too(tmp_path: Path) -> None:
    async with houses(tmp_path, will_jitter=0) as (one, two, first, second):
        await listening(two, second, "hush/home/#")
        one.daemon.stop()
        mortal = await first.connect("mortal", will=Will("hush/home/state", b"offline", 1, True))
        await mortal.stream.aclose()
        await trio.sleep(0.2)
        back = await first.connect("mortal")
        await back.send(Publish("hush/home/state", b"online", 1, True, packet_id=1))
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            assert await back.next() == PubAck(1)
            await until(lambda: second.broker.retained_at("hush/home/state") is not None)
            await trio.sleep(0.2)
            assert len(one.daemon.network.messages) == 1, "and nobody is told of both in the wrong order"
            nursery.cancel_scope.cancel()
