"""Reservations that travel: a house's readers get what the publisher's house would give to its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from fake_daemon import FakeDaemon
from houses import House as PlainHouse
from houses import quick, until
from keyed_houses import LINK, POSITION, House, house, keyed, network
from purposes_house import Reader

from hushcast_gateway.network import reservation_updates
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.wire.packets import RequestedSubscription, SubAck, Subscribe
from hushcast_protocol.purposes.carried_reservations import CarriedContent, write_carried
from hushcast_protocol.purposes.message_purposes import RESERVED
from hushcast_protocol.purposes.sealed_messages import is_sealed
from hushcast_runtime.storage.store import MemoryStore

CARRIES = "reservations = true"
RETAINED = "hush/cars/7/kept"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setattr(reservation_updates, "LOOK_EVERY", 0.02)


@asynccontextmanager
async def two(tmp_path: Path, **options: str) -> AsyncIterator[tuple[House, House]]:
    async with network(tmp_path, None, None, alias=CARRIES, **options) as (one, other):
        yield one, other


async def arrived(place: House, count: int) -> None:
    await until(lambda: place.counters.as_dict()["network_arrived"] == count)


async def late(place: House, user: str, name: str) -> Reader:
    """Return another client of a user, subscribed to what is retained."""
    client = Reader(await place.gateway.connect(name, username=user))
    assert await client.subscribe(RETAINED) == 1
    return client


def under(place: House, topic: str = RETAINED) -> str | None:
    """Return the reservations that a house keeps a retained message with, `None` where it keeps none."""
    kept = place.gateway.broker.retained_at(topic)
    return None if kept is None else dict(kept.properties.get("user_property", ())).get(RESERVED, "")


async def test_a_reader_elsewhere_gets_what_the_publishers_house_allows(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        dashboard, advertiser = await other.reads("dashboard"), await other.reads("advertiser")
        nobody = await other.connect("car")
        assert await nobody.subscribe("hush/cars/#") == 1
        car = await one.connect("car")
        assert await car.publish(POSITION, b"for anything") == 0
        assert await car.reserve("hush/cars/#", "operations,marketing", "marketing/individualized") == 0
        assert await car.publish(POSITION, b"for some") == 0
        assert await car.publish(POSITION, b"for less", user_property=[("aip", "marketing")]) == 0
        assert await car.reserve("hush/cars/#", "", "") == 0
        assert await car.publish(POSITION, b"for nobody") == 0
        await arrived(other, 4)
        assert await dashboard.got() == [b"for anything", b"for some"]
        assert await advertiser.got() == await nobody.got() == [b"for anything"]
        assert [is_sealed(payload) for _, payload in one.daemon.published] == [False, True, True, True]
        assert not any(b"car," in payload for _, payload in one.daemon.published), "no owner's name"


async def test_both_houses_narrow(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        dashboard, advertiser = await other.reads("dashboard"), await other.reads("advertiser")
        car, theirs = await one.connect("car"), await other.connect("car")
        assert await theirs.reserve("hush/cars/#", "operations") == 0
        assert await car.reserve("hush/cars/#", "operations,marketing") == 0
        await car.publish(POSITION, b"1")
        await arrived(other, 1)
        assert [await dashboard.got(), await advertiser.got()] == [[b"1"], []]
        assert await theirs.release("hush/cars/#") == 0
        await car.publish(POSITION, b"2")
        await arrived(other, 2)
        assert [await dashboard.got(), await advertiser.got()] == [[b"2"], [b"2"]]


async def test_strict_rules_travel(tmp_path: Path) -> None:
    async with two(tmp_path, section="strict = true") as (one, other):
        dashboard = await other.reads("dashboard")
        car = await one.connect("car")
        await car.publish(POSITION, b"nobody reserved it")
        assert await car.reserve("hush/cars/#", "operations") == 0
        await car.publish(POSITION, b"reserved")
        await arrived(other, 2)
        assert await dashboard.got() == [b"reserved"]


async def test_what_waits_for_a_client_that_is_away_and_what_is_retained_keep_their_reservations(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as (one, other):
        readers = {}
        for user in ("dashboard", "advertiser"):
            client = await other.gateway.connect(
                user, username=user, clean=False, properties={"session_expiry_interval": 60}
            )
            await client.send(Subscribe(1, [RequestedSubscription("hush/cars/#", 1)]))
            assert isinstance(await client.next(), SubAck)
            readers[user] = client
        await until(lambda: any(one["ready"] for one in other.daemon.service.subscriptions()))
        for client in readers.values():
            await client.stream.aclose()
        car = await one.connect("car")
        assert await car.reserve("hush/cars/#", "operations") == 0
        await car.publish(POSITION, b"waits")
        await car.publish(RETAINED, b"precious", retain=True)
        await until(lambda: under(other) == "operations|")
        assert await (await late(other, "dashboard", "late")).got() == [b"precious"]
        assert await (await late(other, "advertiser", "late")).got() == []
        for user, due in (("dashboard", [b"waits", b"precious"]), ("advertiser", [])):
            again = await other.gateway.connect(
                user, username=user, clean=False, properties={"session_expiry_interval": 60}
            )
            for payload in due:
                assert (await again.message()).payload == payload


async def test_a_change_follows_what_is_retained_and_nothing_is_handed_out_again(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        dashboard = await other.reads("dashboard")
        car = await one.connect("car")
        await car.publish(RETAINED, b"precious", retain=True)
        await until(lambda: under(other) == "")
        for aip, pip, written in (
            ("operations,marketing", "", "marketing,operations|"),
            ("operations", "operations/routing", "operations|operations/routing"),
            ("", "", "|"),
            ("operations", "", "operations|"),
        ):
            assert await car.reserve("hush/cars/#", aip, pip) == 0
            await until(lambda written=written: under(other) == written)  # type: ignore[misc]
            due = [b"precious"] if aip and not pip else []
            assert await (await late(other, "dashboard", written)).got() == due
        assert await car.release("hush/cars/#") == 0
        await until(lambda: under(other) == "")
        assert await dashboard.got() == [b"precious"], "once, when it was published"
        assert not any(b"precious" in payload for _, payload in one.daemon.published[1:])
        count = len(one.daemon.published)
        assert await car.reserve("home/#", "operations") == 0
        await trio.sleep(0.2)
        assert len(one.daemon.published) == count, "nothing of what other houses have has changed"


async def test_of_many_changes_some_wait_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation_updates, "MAX_UNDER_WAY", 2)
    async with two(tmp_path) as (one, other):
        await other.reads("dashboard")
        car, topics = await one.connect("car"), [f"hush/cars/{number}" for number in range(7)]
        for topic in topics:
            await car.publish(topic, b"precious", retain=True)
        await until(lambda: all(under(other, topic) == "" for topic in topics))
        assert await car.reserve("hush/cars/#", "operations") == 0
        await until(lambda: all(under(other, topic) == "operations|" for topic in topics))
        assert len(one.daemon.published) == 14, "one each"


async def test_an_update_reaches_neither_what_is_newer_nor_what_is_that_houses_own(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        await other.reads("dashboard")
        car, theirs = await one.connect("car"), await other.connect("car")
        await car.publish(RETAINED, b"same", retain=True)
        await until(lambda: under(other) == "")
        await theirs.publish(RETAINED, b"same", retain=True)
        one.network._updates._told[RETAINED] = "research|"  # as if others had been told something else
        one.network._purposes._changed(None)
        await arrived(other, 2)
        await trio.sleep(0.1)
        assert under(other) == "", "published there: that house's reservations hold"


async def test_changes_while_the_gateway_was_away_are_told_by_its_next_start(tmp_path: Path) -> None:
    store = MemoryStore()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            first, second = FakeDaemon(tmp_path / "a"), None
            second = FakeDaemon(tmp_path / "b", network=first.network)
            await first.start(nursery)
            await second.start(nursery)
            async with house(second, None) as other:
                await other.reads("dashboard")
                async with house(first, None, alias=CARRIES, store=store) as one:
                    car = await one.connect("car")
                    await car.publish(RETAINED, b"precious", retain=True)
                    await until(lambda: under(other) == "")
                    await trio.sleep(0.1)
                section = '[[purposes.reservation]]\nfilter = "hush/cars/#"\naip = ["operations"]'
                async with house(first, None, section, alias=CARRIES, store=store):
                    await until(lambda: under(other) == "operations|")
                    await until(lambda: bool(store._records["gateway-reserved"]))
                async with house(first, None, alias=CARRIES, store=store):
                    await until(lambda: under(other) == "")
                    await until(lambda: not store._records["gateway-reserved"])
            nursery.cancel_scope.cancel()


async def test_a_gateway_without_purposes_gives_what_is_reserved_to_nobody_and_keeps_none_of_it(
    tmp_path: Path,
) -> None:
    async with network(tmp_path, None, alias=CARRIES) as (one,), trio.open_nursery() as nursery:
        plain = PlainHouse(tmp_path / "p", {"cars": LINK}, {}, None)
        plain.daemon = FakeDaemon(tmp_path / "p" / "s", network=one.daemon.network)
        await plain.daemon.start(nursery)
        async with plain.gateway() as gateway:
            reader = await gateway.connect("reader")
            await reader.subscribe("hush/cars/#", 1)
            await until(lambda: any(each["ready"] for each in plain.daemon.service.subscriptions()))
            car = await one.connect("car")
            for topic in (RETAINED, f"{RETAINED}/2"):
                await car.publish(topic, b"for anything", retain=True)
                assert (await reader.message()).payload == b"for anything"
            assert gateway.broker.retained == 2
            assert await car.reserve("hush/cars/#", "operations") == 0
            await until(lambda: gateway.broker.retained == 0)
            await car.publish(RETAINED, b"for some", retain=True)
            await until(lambda: plain.counters.as_dict()["network_not_opened"] == 3)
            assert gateway.broker.retained == 0
            assert await car.release("hush/cars/#") == 0
            await car.publish(POSITION, b"for anything again")
            assert (await reader.message()).payload == b"for anything again"
        nursery.cancel_scope.cancel()


async def test_an_alias_with_keys_takes_none_and_an_open_topic_carries_none(tmp_path: Path) -> None:
    keys = keyed(tmp_path / "k", ["operations/routing"])
    async with network(tmp_path, None, keys, alias=CARRIES) as (one, other):
        dashboard = await other.reads("dashboard")
        car = await one.connect("car")
        assert await car.reserve("hush/cars/#", "operations") == 0
        await car.publish(POSITION, b"1")
        await trio.sleep(0.2)
        assert await dashboard.got() == []
        owner = await one.connect("car")
        assert await owner.publish("hush/open/cars", user_property=[("aip", "operations")]) == (
            Reason.NOT_AUTHORIZED
        )


async def test_who_says_too_much_or_nonsense_is_refused(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        car = await one.connect("car")
        long = ",".join(f"p{number}/{'x' * 30}" for number in range(64))
        said = [
            ("hushcast-reserved", "operations"),  # no `|`
            ("hushcast-reserved", ""),
            ("hushcast-reserved", "Operations|"),
        ]
        for pair in said:
            told = await car.publish(POSITION, user_property=[pair])
            assert told == Reason.IMPLEMENTATION_SPECIFIC_ERROR
        many = [("hushcast-reserved", f"{long[:3900]}x|")] * 2
        many = [(name, value.replace("p0/", f"q{number}/")) for number, (name, value) in enumerate(many)]
        assert await car.publish(POSITION, user_property=many) == Reason.NOT_AUTHORIZED
        dashboard = await other.reads("dashboard")
        await car.publish(POSITION, b"1", user_property=[("hushcast-reserved", "research|")])
        await car.publish(POSITION, b"2", user_property=[("hushcast-reserved", "operations|")])
        await arrived(other, 2)
        assert await dashboard.got() == [b"2"], "a client that writes it itself narrows"


async def test_what_means_nothing_comes_to_nobody(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        dashboard = await other.reads("dashboard")
        for clauses in ("Operations|", "operations", "operations|" * 500, ""):
            await one.publish_beside(write_carried(CarriedContent(clauses, b"x")), ())
        await one.publish_beside(write_carried(CarriedContent("research|", b"another house's word")), ())
        await one.publish_beside(write_carried(CarriedContent("operations|", b"as it is meant")), ())
        await arrived(other, 6)
        assert await dashboard.got() == [b"as it is meant"]
        assert other.counters.as_dict()["network_not_opened"] == 4


async def test_a_deletion_reaches_all_who_may_have_it(tmp_path: Path) -> None:
    async with two(tmp_path) as (one, other):
        await other.reads("dashboard")
        car = await one.connect("car")
        assert await car.reserve("hush/cars/#", "operations") == 0
        await car.publish(RETAINED, b"precious", retain=True)
        await until(lambda: under(other) == "operations|")
        assert await car.reserve("hush/cars/#", "") == 0
        await car.publish(RETAINED, b"", retain=True)
        await until(lambda: under(other) is None)
        await until(lambda: not one.store._records.get("gateway-reserved"))


def test_an_update_says_nothing_of_what_is_retained() -> None:
    update = reservation_updates.ReservationUpdate("t", MqttMessage("t", b"secret", 1, True))
    assert b"secret" not in update.message.payload
    assert len(update.message.payload) == 32
    assert not update.message.retain
