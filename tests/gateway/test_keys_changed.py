"""Keys of an alias that change: what came by those of before is read all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from fake_daemon import FakeDaemon
from hanging_disk import Disk
from houses import quick, until
from keyed_houses import POSITION, House, by, house, keyed, keys_section, network
from msgspec.structs import replace
from purposes_house import Reader

from hushcast_gateway.network import network_reader
from hushcast_runtime.storage.store import MemoryStore


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


async def session(house: House) -> Reader:
    """Return a client whose session outlives its connection."""
    return Reader(await house.gateway.connect("d", username="dashboard", clean=False, expiry=1_000))


async def first_message(client: Reader) -> bytes:
    return (await client.client.message()).payload


async def test_what_waits_in_the_daemon_is_read_by_a_gateway_that_starts_with_another_grant(
    tmp_path: Path,
) -> None:
    section = keys_section(tmp_path / "k", ["operations", "marketing"])
    few = by(replace(section, grant_files=section.grant_files[:1]))
    store = MemoryStore()
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            daemon = FakeDaemon(tmp_path / "s")
            other = FakeDaemon(tmp_path / "o", network=daemon.network)
            await daemon.start(nursery)
            await other.start(nursery)
            async with house(daemon, few, store=store) as two:
                reader = await session(two)
                assert await reader.subscribe("hush/cars/#") == 1
                await until(lambda: any(one["ready"] for one in daemon.service.subscriptions()))
                await until(lambda: bool(store._records.get("mqtt-subscription")))
            async with house(other, keyed(tmp_path / "f", ())) as one:
                assert await (await one.connect("car")).publish(POSITION, b"while it was away") == 0
                await daemon.network.arrived()
            async with house(daemon, by(section), store=store) as two:
                assert await first_message(await session(two)) == b"while it was away"
            nursery.cancel_scope.cancel()


async def test_what_is_not_on_disk_yet_when_a_grant_comes_is_not_lost_with_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_reader, "LINGER", 3_600.0)
    section = keys_section(tmp_path / "k", ["operations", "marketing"])
    few = by(replace(section, grant_files=section.grant_files[:1]))
    disk = Disk(MemoryStore())
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            daemon = FakeDaemon(tmp_path / "s")
            other = FakeDaemon(tmp_path / "o", network=daemon.network)
            await daemon.start(nursery)
            await other.start(nursery)
            async with house(daemon, few, store=disk) as two, house(other, keyed(tmp_path / "f", ())) as one:
                reader = await session(two)
                assert await reader.subscribe("hush/cars/#") == 1
                await until(lambda: any(one["ready"] for one in daemon.service.subscriptions()))
                await reader.leave()
                disk.hang()
                assert await (await one.connect("car")).publish(POSITION, b"not on disk") == 0
                await until(lambda: two.counters.as_dict()["network_arrived"] == 1)
                two.network.replace_keys({"cars": by(section, few)})
                with trio.move_on_after(0.5):
                    await until(lambda: len(daemon.service.subscriptions()) == 2)
                    await until(lambda: len(daemon.service.subscriptions()) == 1)
            disk.lose()
            async with house(daemon, by(section), store=disk) as two:
                assert await first_message(await session(two)) == b"not on disk"
            nursery.cancel_scope.cancel()


async def test_a_grant_that_goes_and_comes_back_is_read_by_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_reader, "LINGER", 1.0)
    section = keys_section(tmp_path / "k", ["operations", "marketing"])
    few = by(replace(section, grant_files=section.grant_files[:1]))
    async with network(tmp_path, keyed(tmp_path / "f", ()), few) as (one, two):
        dashboard, car = await two.reads("dashboard"), await one.connect("car")
        held = two.daemon.service.subscriptions
        before = [one["where"] for one in held()]
        for keys in (by(section, few), few):
            two.network.replace_keys({"cars": keys})
            await until(lambda: len(held()) == 2)
        assert await car.publish(POSITION, b"1") == 0
        await until(lambda: [one["where"] for one in held()] == before)
        assert await car.publish(POSITION, b"2") == 0
        await until(lambda: two.counters.as_dict()["network_arrived"] >= 2)
        assert [(await dashboard.client.message()).payload for _ in range(2)] == [b"1", b"2"]
