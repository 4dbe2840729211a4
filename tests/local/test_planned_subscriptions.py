"""Subscriptions that are planned: each begins at a moment of its own, whatever happens meanwhile."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import trio
from fake_daemon import EPOCH_SECONDS, FakeDaemon
from small_network import BEGIN

from hushcast_local.devices.subscription_plan import SPREAD
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.topics import make_topic, write_link
from hushcast_protocol.devices.carried_links import CarriedLink
from hushcast_runtime.environment import simulated_environment

WITHIN = float(SPREAD * EPOCH_SECONDS)
LINKS = [
    CarriedLink(write_link(make_topic(f"topic {number}", (), TopicSecret(bytes([number]) * 32))))
    for number in range(20)
]


def daemon_at(path: Path) -> FakeDaemon:
    return FakeDaemon(path / "s", simulated_environment("planned", BEGIN))


async def test_they_begin_at_moments_of_their_own(tmp_path: Path) -> None:
    daemon = daemon_at(tmp_path)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        devices = daemon.service.devices
        assert await devices.bring(LINKS) == (20, 0)
        assert await devices.bring(LINKS) == (0, 20), "those that are planned are not planned again"
        assert daemon.service.status()["planned"] == 20
        await trio.sleep(WITHIN + 60)
        begun = sorted(held.beginning.at for held in daemon.service.subscriber.subscriptions)
        assert len(begun) == 20
        between = [later - earlier for earlier, later in itertools.pairwise(begun)]
        assert sum(gap < 1 for gap in between) <= 2
        assert max(begun) - min(begun) > WITHIN / 2
        assert daemon.service.status()["planned"] == 0
        assert {link.link for link in devices.links()} == {link.link for link in LINKS}
        nursery.cancel_scope.cancel()


async def test_those_that_a_restart_interrupts_begin_all_the_same(tmp_path: Path) -> None:
    daemon = daemon_at(tmp_path)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        await daemon.service.devices.bring(LINKS)
        for _ in range(4):
            await trio.sleep(WITHIN / 5)
            daemon.stop()
            await trio.sleep(1)
            await daemon.start(nursery)
        await trio.sleep(WITHIN / 5)
        assert len(daemon.service.subscriber.subscriptions) == 20
        assert await daemon.store.scan("planned-subscription") == []
        nursery.cancel_scope.cancel()


async def test_at_once_is_at_once_and_what_is_taken_back_does_not_begin(tmp_path: Path) -> None:
    daemon = daemon_at(tmp_path)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        devices = daemon.service.devices
        await devices.bring(LINKS[:2], within=0.0)
        await devices.bring(LINKS[2:3])
        await trio.sleep(1)
        assert len(daemon.service.subscriber.subscriptions) == 2
        assert await daemon.service.unsubscribe(LINKS[2].interest().topic)
        await trio.sleep(2 * WITHIN)
        assert len(daemon.service.subscriber.subscriptions) == 2
        nursery.cancel_scope.cancel()


async def test_what_is_no_link_plans_nothing(tmp_path: Path) -> None:
    daemon = daemon_at(tmp_path)
    async with trio.open_nursery() as nursery:
        await daemon.start(nursery)
        with pytest.raises(UsageError):
            await daemon.service.devices.bring([*LINKS, CarriedLink("hushcast:abc")])
        assert daemon.service.status()["planned"] == 0
        nursery.cancel_scope.cancel()
