"""Withdrawals: what its publisher takes back every gateway deletes; nobody else can ask for that."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from fake_daemon import FakeDaemon
from houses import quick, until
from keyed_houses import LINK, POSITION, House, house, keyed, network
from purpose_files import write_files
from purposes_house import Reader

import hushcast
from hushcast_gateway.purposes import withdrawals as withdrawals_module
from hushcast_gateway.purposes.records import AUDIT, read_audit
from hushcast_gateway.purposes.withdrawals import PurposeWithdrawals
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.purposes.message_purposes import digest_in
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

WITHDRAW = f"!PBAC/WITHDRAW/{POSITION}"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


@asynccontextmanager
async def two_houses(tmp_path: Path) -> AsyncIterator[tuple[House, House]]:
    keys = keyed(tmp_path / "f", ()), keyed(tmp_path / "o", ["operations"])
    async with network(tmp_path, *keys) as (one, two):
        yield one, two


async def away(house: House, name: str, wanted: str) -> None:
    """Leave a session behind, to which messages wait."""
    client = await house.gateway.connect(name, username="dashboard", clean=False, expiry=1_000)
    reader = Reader(client)
    assert await reader.subscribe(wanted) < 0x80
    await reader.leave()


async def back(house: House, name: str) -> list[bytes]:
    client = await house.gateway.connect(name, username="dashboard", clean=False, expiry=1_000)
    return await Reader(client).got()


async def arrived(house: House, count: int) -> None:
    await until(lambda: house.counters.as_dict()["network_arrived"] == count)


async def test_what_waits_is_retained_or_owed_is_deleted_and_what_comes_next_is_not(tmp_path: Path) -> None:
    async with two_houses(tmp_path) as (one, two):
        dashboard, car = await two.reads("dashboard"), await one.connect("car")
        await away(two, "away", "hush/cars/#")
        await away(two, "member", "$share/group/hush/cars/#")
        assert await car.publish(POSITION, b"kept", retain=True) == 0
        assert await car.publish("hush/cars/7/speed", b"another topic") == 0
        await arrived(two, 2)
        assert await dashboard.got() == [b"kept", b"another topic"]
        await until(lambda: two.gateway.broker.retained == 1)

        assert await car.publish(WITHDRAW) == 0
        await until(lambda: two.counters.as_dict()["network_withdrawals"] == 1)
        late = await two.connect("dashboard")
        await late.subscribe("hush/cars/#")
        assert await late.got() == [], "not even before it was deleted"
        await until(lambda: two.gateway.broker.retained == one.gateway.broker.retained == 0)
        await until(lambda: two.gateway.broker.counts["withdrawn"] == 2)
        assert [await back(two, name) for name in ("away", "member")] == [[b"another topic"]] * 2

        assert await car.publish(POSITION, b"next", retain=True) == 0
        await until(lambda: two.gateway.broker.retained == 1)
        assert await late.got() == [b"next"]
        told = [read_audit(value) for _, value in await two.store.scan(AUDIT)]
        assert [(entry.what, entry.filter) for entry in told] == [("withdrawn", POSITION)]
        ours = [read_audit(value) for _, value in await one.store.scan(AUDIT)]
        assert ("withdraw", "car", POSITION) in [(entry.what, entry.user, entry.filter) for entry in ours]


async def test_nobody_withdraws_what_another_published(tmp_path: Path) -> None:
    async with two_houses(tmp_path) as (one, two):
        car = await one.connect("car")
        await two.reads("dashboard")
        assert await car.publish(POSITION, b"kept", retain=True) == 0
        await until(lambda: two.gateway.broker.retained == 1)
        # Another user of the same gateway, the same user elsewhere, and whoever repeats what a message shows.
        for house, user in ((one, "advertiser"), (two, "car")):
            assert await (await house.connect(user)).publish(WITHDRAW) == 0
        kept = two.gateway.broker.retained_at(POSITION)
        assert kept is not None
        digest = digest_in(kept.properties["user_property"])
        assert digest is not None
        sealed, tags = keyed(tmp_path / "x", ()).withdraw(digest, time.time())
        await one.publish_beside(sealed, tags)
        await until(lambda: two.counters.as_dict()["network_withdrawals"] == 2)
        late = await two.connect("dashboard")
        await late.subscribe("hush/cars/#")
        assert await late.got() == [b"kept"]


async def test_what_comes_behind_its_withdrawal_is_given_to_nobody(tmp_path: Path) -> None:
    async with two_houses(tmp_path) as (one, two):
        dashboard, car = await two.reads("dashboard"), await one.connect("car")
        assert await car.publish(POSITION, b"first") == 0
        await arrived(two, 1)
        _, again = one.daemon.published[0]
        assert await car.publish(WITHDRAW) == 0
        await until(lambda: two.counters.as_dict()["network_withdrawals"] == 1)
        await dashboard.got()
        _, tags = keyed(tmp_path / "x", ()).seal(b"", [], False, time.time())
        await one.publish_beside(again, tags)
        await arrived(two, 3)  # and the withdrawal
        assert await dashboard.got() == []


async def test_a_program_withdraws_what_gateways_keep_of_its_own(tmp_path: Path) -> None:
    files = write_files(tmp_path / "w", [])
    fleet = hushcast.read_purpose_keys(files.vocabulary)
    locks = [hushcast.new_lock(tmp_path / name) for name in ("a.lock", "b.lock")]
    async with network(tmp_path, keyed(tmp_path / "o", ["operations"])) as (house,):
        await house.reads("dashboard")
        await away(house, "away", "hush/cars/#")
        async with hushcast.connect(house.daemon.socket) as daemon:
            for lock in locks:
                await daemon.publish(LINK, "kept", purposes=fleet.allow(["operations"], lock=lock))
            await arrived(house, 2)
            await daemon.publish(LINK, b"", purposes=fleet.withdraw(hushcast.read_lock(tmp_path / "a.lock")))
        await until(lambda: house.gateway.broker.counts["withdrawn"] == 1)
        assert await back(house, "away") == [b"kept"]


def test_a_lock_shown_on_one_topic_withdraws_nothing_on_another_and_shows_nothing(tmp_path: Path) -> None:
    lock = hushcast.new_lock(tmp_path / "a.lock")
    assert lock.of("cars") == lock.of(hushcast.new_link("cars")) != lock.of(LINK)
    assert repr(lock) == "Lock(...)"
    (tmp_path / "a.lock").chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        hushcast.read_lock(tmp_path / "a.lock")


async def test_a_withdrawal_waits_for_the_daemon_over_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            daemon = FakeDaemon(tmp_path / "s")
            keys = keyed(tmp_path / "k", ())
            async with house(daemon, keys, store=store) as one:
                car = await one.connect("car")
                assert await car.publish(WITHDRAW) == 0, "it is on disk, and the daemon is away"
            await daemon.start(nursery)
            async with house(daemon, keys, store=store) as one:
                await until(lambda: len(daemon.published) == 1)
                await until(lambda: not one.rules.withdrawals.unsent())
                await until(lambda: not len(one.gateway.broker.ledger))
            async with house(daemon, keys, store=store) as one:
                assert one.rules.withdrawals.unsent() == []
            assert len(daemon.published) == 1
            nursery.cancel_scope.cancel()


async def test_who_may_not_withdraw_hears_it_and_it_is_audited(tmp_path: Path) -> None:
    async with network(tmp_path, keyed(tmp_path / "f", ())) as (one,):
        car = await one.connect("car")
        for topic, reason in (
            ("home/lamp", Reason.IMPLEMENTATION_SPECIFIC_ERROR),
            ("hush/cars/HASH", Reason.TOPIC_NAME_INVALID),
            ("hush/vans/7", Reason.IMPLEMENTATION_SPECIFIC_ERROR),
        ):
            assert await car.publish(f"!PBAC/WITHDRAW/{topic}") == reason
        await until(lambda: len(one.gateway.broker.ledger) == 0)
        told = [read_audit(value) for _, value in await one.store.scan(AUDIT)]
        assert [bool(entry.refused) for entry in told] == [True] * 3
        assert one.daemon.published == []


# What is kept of withdrawals.


def made() -> tuple[PurposeWithdrawals, Ledger]:
    found, ledger = PurposeWithdrawals(), Ledger()
    found.attach(ledger, os.urandom)
    return found, ledger


async def test_what_was_withdrawn_is_known_after_a_restart_and_the_oldest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(withdrawals_module, "MAX_WITHDRAWN", 2)
    store = MemoryStore()
    before, ledger = made()
    marks = []
    for _ in range(3):
        marks.append(before.owned("car", POSITION, {}))
        before.make("car", POSITION)
    await store.write(*(Change(*one) for one in ledger.take()))
    after = PurposeWithdrawals()
    await after.load(store)
    after.attach(Ledger(), os.urandom)
    for one in (before, after):
        assert [one.is_withdrawn(mark) for mark in marks] == [False, True, True]
        assert len(one.unsent()) == 3
    assert after.owned("car", POSITION, {}) == before.owned("car", POSITION, {})
    assert after.is_due(0.0), "what was withdrawn before a crash may still be there"
    assert not after.is_due(100.0)


def test_withdrawals_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withdrawals_module, "MAX_WITHDRAWALS", 2)
    monkeypatch.setattr(withdrawals_module, "MAX_UNSENT", 2)
    found, _ = made()
    for topic in ("a", "b"):
        found.make("car", topic)
    with pytest.raises(UsageError, match="2 topics are the most"):
        found.make("car", "c")
    found.make("car", "a")
    with pytest.raises(UsageError, match="not taken the earlier"):
        found.make("car", "a")
    found.make("other", "c")
    for one in found.unsent():
        found.sent(one)
    assert found.unsent() == []
    found.make("car", "a")


def test_many_withdrawals_cost_one_look_in_some_seconds() -> None:
    found, _ = made()
    looks = []
    for second in range(100):
        found.take(bytes([second]) * 32)
        looks.append(found.is_due(float(second)))
    assert [second for second, look in enumerate(looks) if look] == list(range(0, 100, 10))


def test_each_owner_topic_and_withdrawal_has_a_digest_of_its_own() -> None:
    found, _ = made()
    properties: Any = {"user_property": [("a", "b"), ("hushcast-withdrawn-by", "00")]}
    first = found.owned("car", "t", properties)
    assert first["user_property"][0] == ("a", "b")
    assert len(first["user_property"]) == 2, "what a client writes there itself does not count"
    digests = {
        digest_in(found.owned(user, topic, {})["user_property"])
        for user in ("car", "van")
        for topic in ("t", "u")
    }
    found.make("car", "t")
    digests.add(digest_in(found.owned("car", "t", {})["user_property"]))
    assert len(digests) == 5
    assert found.is_withdrawn(first)
    assert not found.is_withdrawn({})
    assert digest_in([("hushcast-withdrawn-by", "no hex")]) is None
