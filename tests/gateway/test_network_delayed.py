"""Delayed messages whose topics travel: they reach other houses when they are due, over a kill, too."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from houses import LINK, House, acknowledged, houses, listening, quick, until

from hushcast_gateway import broker_state
from hushcast_gateway.sections.limits_section import LimitsSection
from hushcast_protocol.mqtt.wire.packets import Publish


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setattr(broker_state, "TICK", 0.05)


async def test_a_message_is_in_the_other_house_when_it_is_due(tmp_path: Path) -> None:
    async with houses(tmp_path, limits=LimitsSection(delayed=5)) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        for seconds in (1, 0):
            sent = Publish(f"$delayed/{seconds}/hush/home/a", b"%d" % seconds, 1, True, packet_id=1)
            assert await acknowledged(writer, sent) == 0
        assert [(await reader.message()).payload for _ in range(2)] == [b"0", b"1"]
        await until(lambda: first.broker.delayed.count == 0)
        await until(lambda: first.broker.retained == 1)


async def test_what_the_daemon_has_not_taken_before_a_kill_is_published_after_it(tmp_path: Path) -> None:
    one = House(tmp_path / "one", {"home": LINK}, {}, None, limits=LimitsSection(delayed=5))
    two = House(tmp_path / "two", {"home": LINK}, {}, one)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await two.daemon.start(nursery)
            async with two.gateway() as second:
                reader = await listening(two, second, "hush/home/#")
                async with one.gateway() as first:  # whose daemon is away
                    writer = await first.connect("writer")
                    sent = Publish("$delayed/0/hush/home/a", b"x", 1, packet_id=1)
                    assert await acknowledged(writer, sent) == 0
                    await until(lambda: first.broker.delayed.waiting() == [])
                    assert first.broker.delayed.count == 1, "it is on its way"
                await one.daemon.start(nursery)
                async with one.gateway() as again:
                    assert (await reader.message()).payload == b"x"
                    await until(lambda: again.broker.delayed.count == 0)
            nursery.cancel_scope.cancel()
