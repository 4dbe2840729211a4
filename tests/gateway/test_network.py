"""Topics that travel: from a client of one house to a client of another, and what may happen on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from hanging_disk import Disk
from houses import LINK, House, acknowledged, houses, listening, quick, until
from memory_gateway import running

import hushcast
from hushcast_gateway.network import network_publisher
from hushcast_gateway.network.no_daemon import DaemonlessNetwork
from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.envelope import OpenedEnvelope, enclose
from hushcast_protocol.mqtt.limits import MAX_TOPIC
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.topic_filters import MAX_LEVELS
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    PubAck,
    Publish,
    RequestedSubscription,
    SubAck,
    Subscribe,
    Unsubscribe,
    Will,
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


@pytest.mark.parametrize("version", [V5, V311])
async def test_what_one_house_publishes_the_other_gets(tmp_path: Path, version: int) -> None:
    async with houses(tmp_path) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#", version=version)
        writer = await first.connect("writer", version=version)
        assert await acknowledged(writer, Publish("hush/home/kitchen/temp", b"21", 1, packet_id=1)) == 0
        message = await reader.message()
        assert (message.topic, message.payload, message.qos) == ("hush/home/kitchen/temp", b"21", 1)


async def test_a_program_without_mqtt_reads_and_writes_open_topics(tmp_path: Path) -> None:
    async with (
        houses(tmp_path) as (_, two, first, second),
        hushcast.connect(two.daemon.socket) as daemon,
        daemon.subscribe("news/of the day") as messages,
    ):
        writer = await first.connect("writer")
        await writer.send(Publish("hush/open/news/of the day", b"it rains"))
        assert (await anext(messages)).payload == b"it rains"
        reader = await second.connect("reader")
        await reader.subscribe("hush/open/news/of the day", 1)
        await daemon.publish("news/of the day", "it shines")
        assert (await reader.message()).payload in (b"it rains", b"it shines")


async def test_a_map_carries_topics_that_cannot_be_changed(tmp_path: Path) -> None:
    async with houses(tmp_path, {"zigbee2mqtt/#": "home"}) as (one, two, first, second):
        reader = await listening(two, second, "hush/home/zigbee2mqtt/+")
        automation = await listening(one, first, "zigbee2mqtt/lamp")
        lamp = await first.connect("lamp")
        await lamp.send(Publish("zigbee2mqtt/lamp", b"on"))
        assert (await automation.message()).topic == "zigbee2mqtt/lamp", "at once, without the network"
        assert (await reader.message()).topic == "hush/home/zigbee2mqtt/lamp"
        switch = await second.connect("switch")
        await switch.send(Publish("hush/home/zigbee2mqtt/lamp", b"off"))
        assert ((await automation.message()).topic, automation) == ("zigbee2mqtt/lamp", automation)


@pytest.mark.parametrize("name", ["cars/7", "hush/home/cars/7"])
@pytest.mark.parametrize("reserved", ["cars/HASH", "hush/home/cars/HASH"])
@pytest.mark.parametrize(("purpose", "told"), [(None, 0x87), ("marketing", 0x87), ("operations", 0)])
async def test_what_is_reserved_travels_for_the_aliass_purpose_alone(
    tmp_path: Path, purpose: str | None, told: int, reserved: str, name: str
) -> None:
    """Whichever of its two names is reserved, and whichever it is published to."""
    section = PurposesSection()
    async with houses(tmp_path, {"cars/#": "home"}, purposes=section, purpose=purpose) as (
        _,
        two,
        first,
        second,
    ):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        await acknowledged(writer, Publish(f"!RESERVE/{reserved}{{operations}}", b"", 1, packet_id=1))
        assert await acknowledged(writer, Publish(name, b"1", 1, packet_id=2)) == told
        assert await acknowledged(writer, Publish("hush/home/weather", b"2", 1, packet_id=3)) == 0
        assert (await reader.message()).payload == (b"2" if told else b"1")


async def test_what_is_withdrawn_while_it_waits_for_the_daemon_does_not_travel(tmp_path: Path) -> None:
    async with houses(tmp_path, purposes=PurposesSection(), purpose="operations") as (
        one,
        two,
        first,
        second,
    ):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        one.daemon.stop()
        await writer.send(Publish("hush/home/7", b"1", 1, packet_id=1))
        await writer.send(Publish("!RESERVE/hush/home/7{}", b"", 1, packet_id=2))
        await writer.send(Publish("hush/home/8", b"2", 1, packet_id=3))
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            answers = {}
            while len(answers) < 3:
                packet = await writer.next()
                assert isinstance(packet, PubAck)
                answers[packet.packet_id] = packet.reason
            assert answers == {1: Reason.NOT_AUTHORIZED, 2: 0, 3: 0}
            assert (await reader.message()).payload == b"2"
            nursery.cancel_scope.cancel()


async def test_what_is_in_a_map_works_in_the_house_whatever_becomes_of_the_network(tmp_path: Path) -> None:
    async with houses(tmp_path, {"zigbee2mqtt/#": "home"}) as (one, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        automation = await listening(one, first, "zigbee2mqtt/#")
        lamp = await first.connect("lamp")
        await lamp.send(Publish("zigbee2mqtt/bridge/devices", bytes(300_000)))
        assert len((await automation.message()).payload) == 300_000, "too large to travel"
        one.daemon.stop()
        await lamp.send(Publish("zigbee2mqtt/lamp", b"on"))
        assert (await automation.message()).payload == b"on"
        await lamp.send(Publish("zigbee2mqtt/lamp", b"off", 1, packet_id=1))
        assert (await automation.message()).payload == b"off"
        with trio.move_on_after(0.2):
            raise AssertionError(f"acknowledged by whom: {await lamp.next()}")
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            assert await lamp.next() == PubAck(1)
            assert {(await reader.message()).payload for _ in range(2)} == {b"on", b"off"}
            with trio.move_on_after(0.1):
                raise AssertionError(f"again: {await automation.next()}")
            nursery.cancel_scope.cancel()


async def test_clients_of_the_same_house_get_it_once(tmp_path: Path) -> None:
    async with houses(tmp_path) as (one, _, first, _):
        reader = await listening(one, first, "hush/home/#")
        writer = await first.connect("writer")
        for number in range(5):
            await acknowledged(writer, Publish("hush/home/a", b"%d" % number, 1, packet_id=number + 1))
        assert [(await reader.message()).payload for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
        await until(lambda: one.counters.as_dict()["network_arrived"] == 5)
        with trio.move_on_after(0.1):
            raise AssertionError(f"again: {await reader.next()}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("hush/open/news", 1),
        ("hush/open/#", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED),
        ("hush/open/+/x", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED),
        ("hush/open/" + "é" * 200, Reason.TOPIC_FILTER_INVALID),
        ("hush/open/" + LINK, Reason.TOPIC_FILTER_INVALID),
        ("hush/home/#", 1),
        ("hush/home", 1),
        ("hush/nobody/#", Reason.TOPIC_FILTER_INVALID),
        ("hush/#", 1),
        ("#", 2),
        ("home/#", 2),
    ],
)
async def test_what_is_granted(tmp_path: Path, wanted: str, told: int) -> None:
    async with houses(tmp_path) as (_, _, first, _):
        client = await first.connect()
        await client.send(Subscribe(1, [RequestedSubscription(wanted, 2)]))
        answer = await client.next()
        assert isinstance(answer, SubAck)
        assert answer.reasons == [told]


async def test_wildcards_open_nothing_in_the_network(tmp_path: Path) -> None:
    async with houses(tmp_path, {"home/#": "home"}) as (one, _, first, _):
        client = await first.connect()
        for wanted in ("#", "+/kitchen/temp", "hush/#", "hush/+/a"):
            await client.subscribe(wanted)
        await trio.sleep(0.2)
        assert one.daemon.service.subscriptions() == []
        await client.subscribe("home/+/temp")
        await until(lambda: len(one.daemon.service.subscriptions()) == 1)


@pytest.mark.parametrize(
    ("topic", "payload", "properties", "reason"),
    [
        ("hush/nobody/a", b"", {}, Reason.TOPIC_NAME_INVALID),
        ("hush/open/" + LINK, b"", {}, Reason.TOPIC_NAME_INVALID),
        ("hush/open/", b"", {}, Reason.TOPIC_NAME_INVALID),
        ("hush/open/a", bytes(262_145), {}, Reason.IMPLEMENTATION_SPECIFIC_ERROR),
        ("hush/open/a", b"", {"user_property": [("a", "x" * 4_096)]}, Reason.IMPLEMENTATION_SPECIFIC_ERROR),
        ("hush/open/a", bytes(262_144), {}, Reason.SUCCESS),
    ],
)
async def test_what_is_refused(
    tmp_path: Path, topic: str, payload: bytes, properties: Any, reason: int
) -> None:
    async with houses(tmp_path) as (_, _, first, _):
        client = await first.connect()
        packet = Publish(topic, payload, 1, packet_id=1, properties=properties)
        assert await acknowledged(client, packet) == reason


async def test_no_client_reaches_a_subscription_of_the_daemon_by_its_handle(tmp_path: Path) -> None:
    async with houses(tmp_path) as (one, _, first, _):
        handle = (await one.daemon.hold(hushcast.new_link("family", private=True))).handle
        client = await first.connect()
        await client.send(Subscribe(1, [RequestedSubscription(f"hush/open/{handle}", 1)]))
        answer = await client.next()
        assert isinstance(answer, SubAck)
        assert answer.reasons == [Reason.TOPIC_FILTER_INVALID]
        packet = Publish(f"hush/open/{handle}", b"us", 1, packet_id=2)
        assert await acknowledged(client, packet) == Reason.TOPIC_NAME_INVALID
        assert one.daemon.published == []


@pytest.mark.parametrize(("which", "left"), [("all", {"a", "c"}), ("known", {"c"}), ("none", set())])
async def test_properties_leave_as_configured(tmp_path: Path, which: Any, left: set[str]) -> None:
    async with houses(tmp_path, properties=which) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        properties: Any = {"user_property": [("a", "b")], "content_type": "c"}
        await writer.send(Publish("hush/home/x", b"", properties=properties))
        found = (await reader.message()).properties
        names = {name for name, _ in found.get("user_property", [])} | {found.get("content_type", "")}
        assert names - {""} == left


async def test_a_daemon_that_is_away_is_waited_for(tmp_path: Path) -> None:
    async with houses(tmp_path) as (one, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        one.daemon.stop()
        two.daemon.stop()
        await writer.send(Publish("hush/home/a", b"x", 1, packet_id=1))
        with trio.move_on_after(0.2):
            raise AssertionError(f"acknowledged by whom: {await writer.next()}")
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            await two.daemon.start(nursery)
            assert await writer.next() == PubAck(1)
            assert (await reader.message()).payload == b"x"
            nursery.cancel_scope.cancel()


async def test_local_topics_need_no_daemon(tmp_path: Path) -> None:
    house = House(tmp_path / "one", {"home": LINK}, {}, None)
    async with house.gateway() as gateway:
        with trio.fail_after(5):
            client = await gateway.connect()
            await client.subscribe("a/#", 1)
            await client.send(Publish("a/b", b"x", 1, packet_id=1))
            assert {type(await client.next()) for _ in range(2)} == {PubAck, Publish}


async def test_too_many_for_a_daemon_that_is_away_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_publisher, "MAX_WAITING", 3)  # of which one user has two
    house = House(tmp_path / "one", {"home": LINK}, {}, None)
    async with house.gateway() as gateway:
        with trio.fail_after(5):
            client = await gateway.connect()
            for number in (1, 2):
                await client.send(Publish("hush/home/a", b"x", 1, packet_id=number))
            # The places of the first two are kept: answers go in order.
            await client.send(Publish("hush/home/a", b"x", 1, packet_id=3))
            await until(lambda: house.counters.as_dict()["network_refused"] == 1)


async def test_a_session_gets_what_came_while_its_client_was_away(tmp_path: Path) -> None:
    async with houses(tmp_path) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#", clean=False, expiry=1_000)
        await reader.stream.aclose()
        writer = await first.connect("writer")
        await acknowledged(writer, Publish("hush/home/a", b"x", 1, packet_id=1))
        await until(lambda: two.counters.as_dict()["network_arrived"] == 1)
        back = await second.connect("listener", clean=False, expiry=1_000)
        assert (await back.message()).payload == b"x"


async def test_what_came_before_a_kill_of_the_gateway_is_not_lost(tmp_path: Path) -> None:
    one = House(tmp_path / "one", {"home": LINK}, {}, None)
    two = House(tmp_path / "two", {"home": LINK}, {}, one)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery, one.gateway() as first:
            for house in (one, two):
                await house.daemon.start(nursery)
            async with two.gateway() as second:
                reader = await listening(two, second, "hush/home/#", clean=False, expiry=1_000)
                await reader.stream.aclose()
                two.daemon.stop()
            writer = await first.connect("writer")
            await acknowledged(writer, Publish("hush/home/a", b"x", 1, packet_id=1))
            async with two.gateway() as again:
                await two.daemon.start(nursery)
                back = await again.connect("listener", clean=False, expiry=1_000)
                assert (await back.message()).payload == b"x"
            nursery.cancel_scope.cancel()


async def test_what_waits_for_the_disk_is_not_acknowledged_with_what_comes_behind_it(tmp_path: Path) -> None:
    one = House(tmp_path / "one", {"home": LINK}, {}, None)
    two = House(tmp_path / "two", {"home": LINK}, {}, one)
    two.store = disk = Disk(two.store)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery, one.gateway() as first:
            for house in (one, two):
                await house.daemon.start(nursery)
            async with two.gateway() as second:
                reader = await listening(two, second, "hush/home/#", clean=False, expiry=1_000)
                await reader.stream.aclose()
                disk.hang()
                await (await first.connect("writer")).send(Publish("hush/home/a", b"x", 1, packet_id=1))
                await until(lambda: two.counters.as_dict()["network_arrived"] == 1)
                # Its own comes back at once, and changes nothing here.
                await (await second.connect("writer")).send(Publish("hush/home/b", b"own", 1, packet_id=1))
                await until(lambda: two.counters.as_dict()["network_arrived"] == 2)
                await trio.sleep(0.2)
            disk.lose()
            async with two.gateway() as again:
                back = await again.connect("listener", clean=False, expiry=1_000)
                assert (await back.message()).payload == b"x"
            nursery.cancel_scope.cancel()


async def test_a_subscription_outlives_its_last_client_for_a_while(tmp_path: Path) -> None:
    async with houses(tmp_path) as (_, two, _, second):
        reader = await listening(two, second, "hush/home/#")
        await reader.send(Unsubscribe(2, ["hush/home/#"]))
        await reader.next()
        await trio.sleep(0.1)
        assert len(two.daemon.service.subscriptions()) == 1
        await reader.subscribe("hush/home/a")
        await trio.sleep(0.5)
        assert len(two.daemon.service.subscriptions()) == 1, "somebody came back in time"
        await reader.stream.aclose()
        await until(lambda: two.daemon.service.subscriptions() == [])
        await until(lambda: two.store._records["gateway-way"] == {})


async def test_what_an_earlier_run_read_and_nobody_wants_is_ended(tmp_path: Path) -> None:
    async with houses(tmp_path) as (_, two, _, second):
        await listening(two, second, "hush/home/#")
        third = House.__new__(House)
        third.__dict__ = dict(two.__dict__)
        third.store = type(two.store)()
        third.store._records = {"gateway-way": dict(two.store._records["gateway-way"])}
        await until(lambda: bool(two.store._records["gateway-way"]))
        async with third.gateway():
            await until(lambda: third.store._records["gateway-way"] == {})


async def test_puback_may_wait_for_a_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_publisher, "RECEIPT_AGAIN", 0.05)
    async with houses(tmp_path, puback="relay") as (one, _, first, _):
        takers = list(one.daemon.network.takers)
        one.daemon.network.receipts = trio.Event()
        writer = await first.connect("writer")
        await writer.send(Publish("hush/home/a", b"x", 1, packet_id=1))
        with trio.move_on_after(0.2):
            raise AssertionError(f"acknowledged by whom: {await writer.next()}")
        one.daemon.network.receipts.set()
        assert takers
        assert await writer.next() == PubAck(1)


async def test_a_level_may_be_a_label_by_which_the_network_routes(tmp_path: Path) -> None:
    async with houses(tmp_path, label="room") as (_, two, first, second):
        reader = await listening(two, second, "hush/home/kitchen/#")
        writer = await first.connect("writer")
        for number, topic in enumerate(("cellar/a", "kitchen/a", "kitchen", "x" * 200), 1):
            await acknowledged(writer, Publish(f"hush/home/{topic}", b"%d" % number, 1, packet_id=number))
        assert [(await reader.message()).topic for _ in range(2)] == [
            "hush/home/kitchen/a",
            "hush/home/kitchen",
        ]
        (held,) = two.daemon.service.subscriptions()
        assert held["where"] == 'room = "kitchen"'
        assert two.counters.as_dict()["network_arrived"] == 2, "nothing else came"


async def test_who_reads_one_level_and_all_gets_each_message_once(tmp_path: Path) -> None:
    async with houses(tmp_path, label="room") as (_, two, first, second):
        one = await listening(two, second, "hush/home/kitchen/#")
        every = await second.connect("every")
        await every.subscribe("hush/home/#", 1)
        await until(lambda: [held["ready"] for held in two.daemon.service.subscriptions()] == [True, True])
        writer = await first.connect("writer")
        for number, topic in enumerate(("kitchen/a", "cellar/a"), 1):
            await acknowledged(writer, Publish(f"hush/home/{topic}", b"", 1, packet_id=number))
        await until(lambda: two.counters.as_dict()["network_arrived"] == 3)
        assert (await one.message()).topic == "hush/home/kitchen/a"
        assert {(await every.message()).topic for _ in range(2)} == {
            "hush/home/kitchen/a",
            "hush/home/cellar/a",
        }
        with trio.move_on_after(0.1):
            raise AssertionError(f"again: {await every.next()}")


async def test_without_a_daemon_what_would_travel_is_refused() -> None:
    async with running(beyond=DaemonlessNetwork()) as gateway:
        client = await gateway.connect(will=Will("hush/open/a", b"gone"))
        assert (
            await acknowledged(client, Publish("hush/open/a", b"x", 1, packet_id=1))
            == Reason.TOPIC_NAME_INVALID
        )
        for wanted, told in (("hush/open/a", Reason.TOPIC_FILTER_INVALID), ("#", 1), ("a", 1)):
            await client.send(Subscribe(1, [RequestedSubscription(wanted, 1)]))
            answer = await client.next()
            assert isinstance(answer, SubAck)
            assert answer.reasons == [told]


async def test_what_comes_with_a_name_that_nobody_here_could_publish_to_is_left_out(tmp_path: Path) -> None:
    async with (
        houses(tmp_path) as (_, two, _first, second),
        hushcast.connect(two.daemon.socket) as daemon,
    ):
        reader = await listening(two, second, "hush/home/#")
        for path in ("x" * MAX_TOPIC, "a/" * MAX_LEVELS, "short"):
            await daemon.publish(LINK, enclose(OpenedEnvelope(b"1", path, False, {})))
        assert (await reader.message()).topic == "hush/home/short"
