"""Reservations whose users are gone, and how whoever runs a gateway takes one away."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from purpose_files import ISSUER, write_files
from purposes_house import USERS, House, house, settings
from trio.testing import MockClock

from hushcast_gateway.purposes import reservation_removal
from hushcast_gateway.purposes.explanation import explain
from hushcast_gateway.purposes.records import AUDIT, RESERVATION, AuditRecord, read_audit
from hushcast_gateway.purposes.reservation_removal import (
    FILE,
    ReservationRemoval,
    ReservationRemover,
    ask_to_drop,
)
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes.clauses import Clause
from hushcast_runtime.processes.config import parse_settings
from hushcast_runtime.storage.store import MemoryStore

POSITION = "cars/car/position"
WITHOUT_CAR = USERS.replace("[users.car]", "[users.other]")


async def noted(store: MemoryStore) -> list[AuditRecord]:
    return [read_audit(value) for _, value in await store.scan(AUDIT)]


@pytest.mark.parametrize("mode", ["publish", "subscribe", "hybrid"])
async def test_who_is_gone_opens_nothing_where_rules_are_strict(
    autojump_clock: MockClock, mode: str, tmp_path: Path
) -> None:
    store, section = MemoryStore(), f'strict = true\nmode = "{mode}"'
    async with house(section, store=store) as place:
        car, device = await place.connect("car"), await place.connect("device")
        await car.reserve("cars/car/#", "operations")
        assert await device.subscribe("cars/car/#") == 1
        await car.publish(POSITION, b"1")
        assert await device.got() == [b"1"]
        before = settings(section, WITHOUT_CAR)
        assert before.purposes is not None
        place.rules.replace(before.purposes, before.speakers(), place.rules.vocabulary)
        owner = await place.connect("owner")
        await owner.publish(POSITION, b"2")
        await trio.sleep(1.1)
        assert await device.got() == []
    async with house(section, WITHOUT_CAR, store=store) as place:
        device, owner = await place.connect("device"), await place.connect("owner")
        await device.subscribe("cars/car/#")
        await owner.publish(POSITION, b"3")
        assert await device.got() == []
        await owner.reserve("cars/#", "operations")
        assert await device.subscribe(POSITION) == 1
        await owner.publish(POSITION, b"4")
        assert await device.got() == [b"4"], "somebody who is there allows it, and who is gone did not say no"
    async with house(section, store=store) as place:
        device, owner = await place.connect("device"), await place.connect("owner")
        await owner.release("cars/#")
        assert await device.subscribe("cars/car/#") == 1, "a user of that name is there again"
        await owner.publish(POSITION, b"5")
        assert await device.got() == [b"5"]


async def test_who_is_gone_goes_on_taking_away(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    async with house(store=store) as place:
        car = await place.connect("car")
        await car.reserve("cars/car/#", "research")
        await trio.sleep(0.5)
    async with house(users=WITHOUT_CAR, store=store) as place:
        device, owner = await place.connect("device"), await place.connect("owner")
        await device.subscribe("cars/#")
        await owner.publish(POSITION, b"1")
        assert await device.got() == []


async def dropped(place: House, state: Path, asked: ReservationRemoval) -> None:
    path = ask_to_drop(state, asked)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ReservationRemover(state, place.rules, place.gateway.state).run)
        while path.exists():  # noqa: ASYNC110
            await trio.sleep(0.1)
        nursery.cancel_scope.cancel()


async def test_what_was_reserved_is_taken_away_on_disk_too(autojump_clock: MockClock, tmp_path: Path) -> None:
    store = MemoryStore()
    async with house(store=store) as place:
        car, owner = await place.connect("car"), await place.connect("owner")
        for wanted in ("cars/car/#", "cars/car/1", "cars/car/2"):
            await car.reserve(wanted, "research")
        await owner.reserve("cars/#", "operations")
        await dropped(place, tmp_path, ReservationRemoval("car", "cars/car/#"))
        assert place.rules.reserved == 3
        device = await place.connect("device")
        await device.subscribe("cars/#")
        await car.publish(POSITION, b"1")
        assert await device.got() == [b"1"]
        await dropped(place, tmp_path, ReservationRemoval("car", None))
        assert place.rules.reserved == 1
        assert len(await store.scan(RESERVATION)) == 1
        entries = [(one.user, one.client_id, one.filter) for one in await noted(store) if one.what == "drop"]
        assert entries == [("car", "", "cars/car/#"), ("car", "", "cars/car/1"), ("car", "", "cars/car/2")]


async def test_who_reserves_without_end_does_not_keep_it_from_ending(
    autojump_clock: MockClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reservation_removal, "AT_ONCE", 2)
    async with house() as place:
        car = await place.connect("car")
        for number in range(10):
            await car.reserve(f"cars/car/{number}", "research")
        changed, count = place.gateway.state.changed, 0

        def reserves_more() -> None:
            nonlocal count
            if count < 100:
                count += 1
                place.rules.kept.reserve(Clause("car", f"cars/car/more/{count}", frozenset(), frozenset()))
            changed()

        monkeypatch.setattr(place.gateway.state, "changed", reserves_more)
        await dropped(place, tmp_path, ReservationRemoval("car", None))
        assert 0 < place.rules.reserved == count < 20


async def test_a_word_that_cannot_be_read_is_left_aside(autojump_clock: MockClock, tmp_path: Path) -> None:
    async with house() as place:
        car = await place.connect("car")
        await car.reserve("cars/car/#", "research")
        (tmp_path / FILE).write_bytes(b"nonsense")
        with pytest.raises(UsageError):
            ask_to_drop(tmp_path, ReservationRemoval("car", None))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ReservationRemover(tmp_path, place.rules, place.gateway.state).run)
            await trio.sleep(1.1)
            nursery.cancel_scope.cancel()
        assert not (tmp_path / FILE).exists()
        assert place.rules.reserved == 1


@pytest.mark.parametrize(("mode", "told"), [("subscribe", 1), ("hybrid", 1)])
async def test_what_would_rest_is_refused_and_noted(autojump_clock: MockClock, mode: str, told: int) -> None:
    store = MemoryStore()
    async with house(f'mode = "{mode}"', store=store) as place:
        car, billing = await place.connect("car"), await place.connect("billing")
        await car.reserve("cars/car/#", "marketing")
        assert await billing.subscribe(POSITION, ap="operations/billing") == 0x87
        await trio.sleep(0.5)
        (entry,) = [one for one in await noted(store) if one.refused]
        assert (entry.user, entry.what, entry.filter) == ("billing", "subscribe", POSITION)
        assert entry.aip == ("operations/billing",)
        assert place.rules.counters["purpose_commands_refused"] == told


async def test_who_allows_nothing_for_one_topic_closes_it(autojump_clock: MockClock) -> None:
    async with house() as place:
        car, device = await place.connect("car"), await place.connect("device")
        await device.subscribe("cars/#")
        await car.reserve("cars/car/#", "operations")
        await car.reserve(POSITION)
        for topic in (POSITION, "cars/car/speed"):
            await car.publish(topic, topic.encode())
        assert await device.got() == [b"cars/car/speed"]


@pytest.mark.parametrize(
    ("topic", "purpose", "allowed", "opens"),
    [
        ("hush/cars/7/position", "operations/routing", True, True),
        ("hush/cars/7/position", "operations/billing", True, False),
        ("home/lamp", "operations/routing", True, True),
        ("hush/cars/home/attic/x", "operations/routing", False, None),
        ("garden/lamp", "operations/routing", True, None),
        ("hush/open/news", "operations/routing", True, None),
    ],
)
def test_an_explanation_knows_all_names_and_what_keys_open(
    topic: str, purpose: str, allowed: bool, opens: bool | None, tmp_path: Path
) -> None:
    (tmp_path / "vocabulary").write_text("operations/routing\noperations/billing\n")
    files = write_files(tmp_path / "keys", ["operations/routing"])
    text = f"""
state = "{tmp_path}/state"
[purposes]
vocabulary = "{tmp_path}/vocabulary"
[[purposes.reservation]]
filter = "home/attic/#"
[daemon]
socket = "/s"
[[gateway.alias]]
name = "cars"
link_file = "/l"
[gateway.alias.keys]
vocabulary_file = "{files.vocabulary}"
issuer = "{ISSUER.public().hex()}"
reader_key_file = "{files.reader_key}"
grant_files = ["{files.grants[0]}"]
[[gateway.map]]
from = "home/#"
to = "cars"
[users.device]
uid = [1]
subscribe = ["#", "hush/#"]
purposes = ["operations"]
"""
    given = parse_settings(text.encode(), "gateway.toml", GatewaySettings)
    (found,) = explain(given, "x", topic, "device", purpose)
    assert (found.allowed, found.opens) == (allowed, opens)
    assert ("over the network" in found.because) == (opens is not None)
