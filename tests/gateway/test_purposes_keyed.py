"""Purposes between gateways, by keys: who was granted a purpose gets what is for it, whoever has the link."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from fake_daemon import FakeDaemon
from houses import quick, until
from keyed_houses import LINK, POSITION, USERS, by, house, keyed, keys_section, network
from msgspec.structs import replace
from purpose_files import EPOCH, issued, write_files

import hushcast
from hushcast_gateway.doctor import GatewayDoctor
from hushcast_gateway.purposes.alias_keys import read_keys
from hushcast_gateway.purposes.command_execution import NOT_GRANTED
from hushcast_gateway.purposes.records import AUDIT, AuditRecord, read_audit
from hushcast_gateway.sections.keys_section import KeysSection
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.sealed_messages import is_sealed
from hushcast_runtime.processes.config import parse_settings
from hushcast_runtime.storage.store import MemoryStore


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


async def test_a_cars_position_comes_to_whom_it_is_for_and_after_a_withdrawal_to_nobody(
    tmp_path: Path,
) -> None:
    fleet, operations = keyed(tmp_path / "f", ()), keyed(tmp_path / "o", ["operations"])
    advertising = keyed(tmp_path / "a", ["marketing/individualized"])
    async with network(tmp_path, fleet, operations, advertising) as (one, two, three):
        dashboard, advertiser = await two.reads("dashboard"), await three.reads("advertiser")
        car = await one.connect("car")
        assert await car.reserve("hush/cars/#", "operations,marketing", "marketing/individualized") == 0
        assert await car.publish(POSITION, b"first") == 0
        await until(lambda: two.counters.as_dict()["network_arrived"] == 1)
        assert await dashboard.got() == [b"first"]

        assert await car.reserve("hush/cars/#", "operations,marketing", "operations/routing") == 0
        assert await car.publish(POSITION, b"second") == 0
        await until(lambda: two.counters.as_dict()["network_arrived"] == 2)
        assert await dashboard.got() == []  # it opened for operations, and not for all below
        assert await advertiser.got() == [b"second"]

        assert await car.reserve("hush/cars/#", "", "") == 0  # nothing is allowed any more
        assert await car.publish(POSITION, b"third") == 0
        await trio.sleep(0.3)
        assert await dashboard.got() == await advertiser.got() == []
        # Relays withheld what would not have opened; nothing of it was in the clear.
        arrived = [house.counters.as_dict()["network_arrived"] for house in (one, two, three)]
        assert arrived == [0, 2, 1]
        assert len(one.daemon.published) == 3
        assert all(is_sealed(payload) for _, payload in one.daemon.published)
        assert not any(b"second" in payload or b"position" in payload for _, payload in one.daemon.published)


async def test_each_client_of_a_gateway_gets_what_opened_for_its_purpose(tmp_path: Path) -> None:
    both = keyed(tmp_path / "b", ["operations/routing", "marketing/individualized"])
    async with network(tmp_path, keyed(tmp_path / "f", ()), both) as (one, two):
        dashboard, advertiser = await two.reads("dashboard"), await two.reads("advertiser")
        car = await one.connect("car")
        terms = {"user_property": [("aip", "operations")]}
        assert await car.publish(POSITION, b"for operations", **terms) == 0
        assert await car.publish(POSITION, b"for all") == 0
        await until(lambda: two.counters.as_dict()["network_arrived"] == 2)
        assert await dashboard.got() == [b"for operations", b"for all"]
        assert await advertiser.got() == [b"for all"]


async def test_without_a_grant_nothing_is_subscribed_to_and_without_keys_nothing_comes(
    tmp_path: Path,
) -> None:
    async with network(tmp_path, keyed(tmp_path / "f", ()), None) as (one, two):
        writer = await one.connect("dashboard")
        assert await writer.subscribe("hush/cars/#") == Reason.NOT_AUTHORIZED
        stranger = await two.reads("dashboard")  # it has the link, and no keys
        car = await one.connect("car")
        assert await car.publish(POSITION, b"secret") == 0
        await until(lambda: two.counters.as_dict()["network_not_opened"] == 1)
        assert await stranger.got() == []


async def test_a_purpose_that_was_not_granted_is_refused_and_noted(tmp_path: Path) -> None:
    store, keys = MemoryStore(), keyed(tmp_path / "o", ["operations/routing"])
    async with network(tmp_path, keys, store=store) as (one,):
        dashboard, advertiser = await one.connect("dashboard"), await one.connect("advertiser")
        car = await one.connect("car")  # its configuration names no purpose, nor does it
        assert await dashboard.subscribe("hush/cars/#") == 1
        assert await dashboard.subscribe("hush/cars/#", "operations") == Reason.NOT_AUTHORIZED  # above it
        assert await advertiser.subscribe("$share/g/hush/cars/+") == Reason.NOT_AUTHORIZED
        assert await car.subscribe("hush/cars/7") == Reason.NOT_AUTHORIZED
        assert await car.subscribe("#") == 1  # whatever else there is
        noted: list[AuditRecord] = []
        while len(noted) < 3:
            await trio.sleep(0.01)
            noted = [read_audit(value) for _, value in await store.scan(AUDIT)]
    assert [(each.user, each.filter, each.aip) for each in noted] == [
        ("dashboard", "hush/cars/#", ("operations",)),
        ("advertiser", "hush/cars/+", ("marketing/individualized",)),
        ("car", "hush/cars/7", ()),
    ]
    assert {each.refused for each in noted} == {NOT_GRANTED}


async def test_what_is_not_sealed_does_not_come_by_an_alias_with_keys(tmp_path: Path) -> None:
    async with network(tmp_path, None, keyed(tmp_path / "o", ["operations/routing"])) as (one, two):
        dashboard = await two.reads("dashboard")
        car = await one.connect("car")
        assert await car.publish(POSITION, b"in the clear") == 0
        await trio.sleep(0.2)
        assert await dashboard.got() == []
        assert two.counters.as_dict()["network_not_opened"] <= 1  # where relays withhold, none comes


async def test_a_reservation_by_the_name_in_a_map_holds_for_what_travels(tmp_path: Path) -> None:
    maps = '[[gateway.map]]\nfrom = "home/#"\nto = "cars"'
    keys = keyed(tmp_path / "f", ()), keyed(tmp_path / "o", ["operations/routing", "marketing"])
    async with network(tmp_path, *keys, maps=maps) as (one, two):
        dashboard = await two.reads("dashboard")
        car = await one.connect("car")
        assert await car.reserve("home/#", "marketing") == 0
        assert await car.publish("home/7", b"by its mapped name") == 0
        assert await car.publish("hush/cars/home/7", b"by its own") == 0
        await until(lambda: two.counters.as_dict()["network_arrived"] == 2)
        assert await dashboard.got() == []


async def test_without_a_grant_a_map_goes_on_in_the_house(tmp_path: Path) -> None:
    maps = '[[gateway.map]]\nfrom = "home/#"\nto = "cars"'
    async with network(tmp_path, keyed(tmp_path / "f", ()), maps=maps) as (one,):
        screen = await one.connect("dashboard")
        assert await screen.subscribe("home/#") == 1
        car = await one.connect("car")
        assert await car.publish("home/lamp", b"on") == 0
        assert await screen.got() == [b"on"]
        assert one.daemon.service.subscriptions() == []


async def test_what_is_retained_is_deleted_also_where_the_next_could_not_be_read(tmp_path: Path) -> None:
    keys = keyed(tmp_path / "f", ()), keyed(tmp_path / "o", ["operations/routing"])
    async with network(tmp_path, *keys) as (one, two):
        await two.reads("dashboard")
        car = await one.connect("car")
        assert await car.publish(POSITION, b"kept", retain=True) == 0
        await until(lambda: two.gateway.broker.retained == 1)
        late = await two.connect("dashboard")
        await late.subscribe(POSITION)
        assert await late.got() == [b"kept"]
        wrong = await two.connect("advertiser")
        await wrong.subscribe(POSITION)
        assert await wrong.got() == []
        await car.reserve("hush/cars/#", "", "")
        assert await car.publish(POSITION, b"", retain=True) == 0
        await until(lambda: two.gateway.broker.retained == 0)


async def test_a_vocabulary_that_is_over_seals_nothing(tmp_path: Path) -> None:
    old = issued(epochs=range(EPOCH - 2, EPOCH))
    async with network(tmp_path, keyed(tmp_path / "f", (), old)) as (one,):
        car = await one.connect("car")
        assert await car.publish(POSITION, b"x") == Reason.IMPLEMENTATION_SPECIFIC_ERROR
        assert one.counters.as_dict()["network_not_sealed"] == 1
        assert one.daemon.published == []


async def test_a_subscription_whose_grants_changed_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    store = MemoryStore()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            daemon = FakeDaemon(tmp_path / "s")
            await daemon.start(nursery)
            for purposes, tags in ((["operations"], 3), (["operations", "marketing"], 5)):
                async with house(daemon, keyed(tmp_path / "k", purposes), store=store) as one:
                    await one.reads("dashboard")
                    await until(lambda tags=tags: tags_asked(daemon) == [tags])  # type: ignore[misc]
            nursery.cancel_scope.cancel()


async def test_another_grant_is_read_by_while_the_gateway_runs_without_a_gap(tmp_path: Path) -> None:
    section = keys_section(tmp_path / "k", ["operations", "marketing"])
    few = replace(section, grant_files=section.grant_files[:1])
    async with network(tmp_path, keyed(tmp_path / "f", ()), by(few)) as (one, two):
        dashboard, car = await two.reads("dashboard"), await one.connect("car")
        terms = {"user_property": [("aip", "marketing")]}
        assert await car.publish(POSITION, b"1", **terms) == 0
        two.network.replace_keys({"cars": by(section, by(few))})
        await until(lambda: tags_asked(two.daemon) == [5])
        advertiser = await two.connect("advertiser")
        assert await advertiser.subscribe("hush/cars/#") == 1
        assert await car.publish(POSITION, b"2", **terms) == 0
        assert await car.publish(POSITION, b"3") == 0
        await until(lambda: two.counters.as_dict()["network_arrived"] == 2)
        assert await advertiser.got() == [b"2", b"3"]
        assert await dashboard.got() == [b"3"]


async def test_a_grant_that_is_gone_hands_out_nothing_more_that_it_opened(tmp_path: Path) -> None:
    section = keys_section(tmp_path / "k", ["operations"])
    async with network(tmp_path, keyed(tmp_path / "f", ()), by(section)) as (one, two):
        dashboard, car = await two.reads("dashboard"), await one.connect("car")
        assert await car.publish(POSITION, b"kept", retain=True) == 0
        await until(lambda: two.gateway.broker.retained == 1)
        assert await dashboard.got() == [b"kept"]
        Path(section.grant_files[0]).unlink()
        two.network.replace_keys({"cars": by(section, by(keys_section(tmp_path / "k2", [])))})
        late = await two.connect("dashboard")
        assert await late.subscribe("hush/cars/#") == Reason.NOT_AUTHORIZED
        assert await late.subscribe("#") == 1
        assert await late.got() == []
        await until(lambda: tags_asked(two.daemon) == [1])  # nothing that anybody seals for a purpose


async def test_who_gets_a_first_grant_reads_what_a_map_brings(tmp_path: Path) -> None:
    maps = '[[gateway.map]]\nfrom = "home/#"\nto = "cars"'
    section = keys_section(tmp_path / "k", ["operations"])
    none = replace(section, grant_files=())
    async with network(tmp_path, by(none), keyed(tmp_path / "f", ()), maps=maps) as (one, two):
        screen, car = await one.connect("dashboard"), await two.connect("car")
        assert await screen.subscribe("home/#") == 1
        assert one.daemon.service.subscriptions() == []
        one.network.replace_keys({"cars": by(section, by(none))})
        await until(lambda: any(held["ready"] for held in one.daemon.service.subscriptions()))
        assert await car.publish("hush/cars/home/lamp", b"on") == 0
        await until(lambda: one.counters.as_dict()["network_arrived"] == 1)
        assert await screen.got() == [b"on"]
        one.network.replace_keys({"cars": by(none, by(section))})
        await until(lambda: one.daemon.service.subscriptions() == [])


def test_an_older_vocabulary_does_not_take_the_place_of_a_newer_one(tmp_path: Path) -> None:
    newer = by(keys_section(tmp_path / "n", [], issued(version=2)))
    with pytest.raises(UsageError, match="a newer version is known"):
        by(keys_section(tmp_path / "o", []), newer)
    forked = keys_section(tmp_path / "x", [], issued(version=2, epochs=range(EPOCH, EPOCH + 3)))
    with pytest.raises(UsageError, match="two of one version"):
        by(forked, newer)
    other = keys_section(tmp_path / "p", ["operations"])
    Path(other.grant_files[0]).write_bytes(b"\0")
    with pytest.raises(UsageError, match="cut off"):
        by(other, by(keys_section(tmp_path / "o", [])))


def tags_asked(daemon: FakeDaemon) -> list[int]:
    return [one["where"].count(",") + 1 for one in daemon.service.subscriptions()]


@asynccontextmanager
async def program(daemon: FakeDaemon) -> AsyncIterator[hushcast.Daemon]:
    """A program beside a house of its own, on the same network."""
    async with trio.open_nursery() as nursery:
        beside = FakeDaemon(daemon.socket.with_suffix(".program"), network=daemon.network)
        await beside.start(nursery)
        async with hushcast.connect(beside.socket) as connected:
            yield connected
        nursery.cancel_scope.cancel()


async def test_a_program_reads_what_a_gateway_seals_and_a_gateway_what_a_program_seals(
    tmp_path: Path,
) -> None:
    files = write_files(tmp_path / "p", ["operations"])
    fleet = hushcast.read_purpose_keys(files.vocabulary, reader_key=files.reader_key, grants=files.grants)
    async with (
        network(tmp_path, keyed(tmp_path / "o", ["marketing/individualized"])) as (one,),
        program(one.daemon) as daemon,
    ):
        advertiser, car = await one.reads("advertiser"), await one.connect("car")
        async with daemon.subscribe(LINK, purpose=fleet.read_for("operations/billing")) as messages:
            assert await car.reserve("hush/cars/#", "operations") == 0
            assert await car.publish(POSITION, b"from the gateway") == 0
            message = await anext(messages)
        assert (message.path, message.text) == ("7/position", "from the gateway")
        await car.release("hush/cars/#")
        for allowed in (["operations"], ["marketing"]):
            await daemon.publish(LINK, f"for {allowed[0]}", purposes=fleet.allow(allowed))
        await until(lambda: one.counters.as_dict()["network_arrived"] == 1)
        assert await advertiser.got() == [b"for marketing"]


def test_keys_that_do_not_hold_are_said(tmp_path: Path) -> None:
    def problem(section: KeysSection) -> str:
        with pytest.raises(UsageError) as found:
            read_keys(section, time.time, os.urandom)
        return str(found.value)

    good = keys_section(tmp_path / "k", ["operations"])
    assert "another issuer" in problem(replace(good, issuer="00" * 32))
    assert "reader_key_file" in problem(replace(good, reader_key_file=None))
    other = keys_section(tmp_path / "other", [])
    assert "another reader" in problem(replace(good, reader_key_file=other.reader_key_file))
    assert "cut off" in problem(replace(good, grant_files=(good.vocabulary_file,)))
    assert "cannot be read" in problem(replace(good, vocabulary_file=str(tmp_path / "nothing")))
    Path(str(good.reader_key_file)).chmod(0o644)
    assert "chmod 600" in problem(good)


@pytest.mark.parametrize(
    ("epochs", "verdict", "found"),
    [
        (range(EPOCH, EPOCH + 9), "good", "left"),
        (range(EPOCH, EPOCH + 1), "warning", "left"),
        (range(EPOCH - 2, EPOCH), "bad", "is over"),
    ],
)
async def test_the_doctor_tells_how_long_keys_are_of_use(
    tmp_path: Path, epochs: range, verdict: str, found: str
) -> None:
    keys = keys_section(tmp_path / "k", ["operations"], issued(epochs=epochs))
    text = f"""
state = "{tmp_path}/state"
[purposes]
[daemon]
socket = "/s"
[[gateway.alias]]
name = "cars"
link_file = "/l"
[gateway.alias.keys]
vocabulary_file = "{keys.vocabulary_file}"
issuer = "{keys.issuer}"
reader_key_file = "{keys.reader_key_file}"
grant_files = ["{keys.grant_files[0]}"]
{USERS}"""
    settings = parse_settings(text.encode(), "gateway.toml", GatewaySettings)
    told = {one.check: one for one in await GatewayDoctor(settings, time.time()).examine()}["keys of cars"]
    assert (told.verdict, found in told.found) == (verdict, True)
    Path(keys.grant_files[0]).write_bytes(b"")
    told = {one.check: one for one in await GatewayDoctor(settings, time.time()).examine()}["keys of cars"]
    assert (told.verdict, "cut off" in told.found) == ("bad", True)


def test_covers_are_remembered_by_what_they_follow_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hushcast_protocol.purposes.purpose_keyring.MAX_COVERS", 2)
    one = keyed(tmp_path / "k", ["operations"])
    for owner in "abca":
        clause = Clause(owner, "#", frozenset({Purpose("operations")}), frozenset())
        sealed, _ = one.seal(b"x", [clause], False, time.time())
        opened, inside = one.open(sealed)
        assert (opened.purposes, inside.content) == ({"operations"}, b"x")
    assert len(one._covers) == 2


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('vocabulary_file = "v"\nissuer = "{0}"', "absolute path"),
        ('vocabulary_file = "/v"\nissuer = "{0}"\ngrant_files = ["/g"]', "name its file"),
        ('vocabulary_file = "/v"\nissuer = "abc"', "issuer"),
    ],
)
def test_a_configuration_with_keys_that_cannot_be_meant_is_refused(lines: str, problem: str) -> None:
    def settings(purposes: str, alias: str) -> GatewaySettings:
        text = f"""
{purposes}
[daemon]
socket = "/s"
[[gateway.alias]]
name = "cars"
link_file = "/l"
{alias}
[gateway.alias.keys]
{lines.format("0" * 64)}
{USERS}"""
        parsed = parse_settings(text.encode(), "gateway.toml", GatewaySettings)
        parsed.check_own()
        return parsed

    with pytest.raises(UsageError, match=problem):
        settings("[purposes]", "")
    if "absolute" in problem:
        lines = lines.replace('"v"', '"/v"')
        settings("[purposes]", "")
        with pytest.raises(UsageError, match="take the alias's purpose out"):
            settings("[purposes]", 'purpose = "operations"')
