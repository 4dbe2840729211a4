"""Order and quality between houses: each topic's messages as they were published, whatever happens."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from houses import LINK, House, acknowledged, hold_answers, houses, listening, quick, until
from houses_elsewhere import elsewhere
from memory_gateway import Client

import hushcast
from hushcast_gateway.network import network_publisher
from hushcast_protocol.mqtt.wire.packets import PubAck, Publish


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)


async def got(client: Client, count: int) -> list[bytes]:
    return [(await client.message()).payload for _ in range(count)]


@pytest.mark.parametrize("qos", [0, 1])
async def test_a_burst_arrives_as_it_was_published(tmp_path: Path, qos: int) -> None:
    async with houses(tmp_path) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        await writer.send(
            *(
                Publish(f"hush/home/{number % 3}", b"%d" % number, qos, packet_id=number * qos)
                for number in range(1, 19)
            )
        )
        found = [await reader.message() for _ in range(18)]
        for topic in "012":
            numbers = [int(one.payload) for one in found if one.topic.endswith(topic)]
            assert numbers == sorted(numbers)
        assert {one.qos for one in found} == {qos}, "as published"


async def test_what_comes_before_its_turn_waits_for_it(tmp_path: Path) -> None:
    async with houses(tmp_path) as (one, two, first, _), elsewhere(two) as other:
        reader = await listening(one, first, "hush/home/#")
        for number in (1, 3, 2, 5, 4):
            await other.says(number, b"%d" % number)
        assert await got(reader, 5) == [b"1", b"2", b"3", b"4", b"5"]


async def test_what_lacks_holds_up_no_other_topic_and_for_a_while_only(tmp_path: Path) -> None:
    async with houses(tmp_path, order_wait=1) as (one, two, first, _), elsewhere(two) as other:
        reader = await listening(one, first, "hush/home/#")
        await other.says(1, b"1")
        await other.says(3, b"3")
        await other.says(1, b"another topic", path="b")
        assert await got(reader, 2) == [b"1", b"another topic"]
        assert one.network.held == 1
        assert await got(reader, 1) == [b"3"]


async def test_what_is_late_turns_nothing_on_and_neither_replaces_nor_deletes(tmp_path: Path) -> None:
    async with houses(tmp_path, order_wait=1) as (one, two, first, _), elsewhere(two) as other:
        reader = await listening(one, first, "hush/home/#")
        for number, payload in ((1, b"OFF"), (3, b"OFF again")):
            await other.says(number, payload, retain=True)
        assert await got(reader, 2) == [b"OFF", b"OFF again"]
        await other.says(2, b"ON", retain=True)
        await until(lambda: one.counters.as_dict()["network_late"] == 1)
        await other.says(4, b"", retain=True)
        assert await got(reader, 1) == [b""], "and nothing before"
        await other.says(3, b"OFF again", retain=True)
        await until(lambda: one.counters.as_dict()["network_late"] == 2)
        assert first.broker.retained_at("hush/home/a") is None, "a deletion leaves its number"


async def test_who_waits_for_nothing_gets_what_is_late_and_does_not_retain_it(tmp_path: Path) -> None:
    async with houses(tmp_path, order_wait=0) as (one, two, first, _), elsewhere(two) as other:
        reader = await listening(one, first, "hush/home/#")
        for number in (2, 1):
            await other.says(number, b"%d" % number, retain=True)
        assert await got(reader, 2) == [b"2", b"1"]
        kept = first.broker.retained_at("hush/home/a")
        assert kept is not None
        assert kept.payload == b"2"


async def test_of_two_gateways_what_comes_first_is_first(tmp_path: Path) -> None:
    async with (
        houses(tmp_path) as (one, two, first, _),
        elsewhere(two) as other,
        elsewhere(two, b"source 2") as third,
    ):
        reader = await listening(one, first, "hush/home/#")
        await other.says(1, b"of one", retain=True)
        await third.says(1, b"of another", retain=True)
        await other.says(2, b"of one again", retain=True)
        assert await got(reader, 3) == [b"of one", b"of another", b"of one again"]
        kept = first.broker.retained_at("hush/home/a")
        assert kept is not None
        assert kept.payload == b"of one again"


async def test_marks_and_numbers_outlive_a_restart(tmp_path: Path) -> None:
    one = House(tmp_path / "one", {"home": LINK}, {}, None)
    two = House(tmp_path / "two", {"home": LINK}, {}, one)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for house in (one, two):
                await house.daemon.start(nursery)
            async with one.gateway() as first, elsewhere(two) as other:
                reader = await listening(one, first, "hush/home/#")
                await other.says(1, b"1")
                await other.says(2, b"2")
                assert await got(reader, 2) == [b"1", b"2"]
                await until(lambda: len(one.store._records["gateway-mark"]) == 1)
            async with one.gateway() as first, elsewhere(two) as other:
                reader = await listening(one, first, "hush/home/#")
                await other.says(1, b"again")
                await other.says(3, b"3")
                assert await got(reader, 1) == [b"3"]
                async with two.gateway() as second:
                    far = await listening(two, second, "hush/home/#")
                    writer = await first.connect("writer")
                    await acknowledged(writer, Publish("hush/home/b", b"x", 1, packet_id=1))
                    assert await got(far, 1) == [b"x"]
                    await until(lambda: len(two.store._records["gateway-mark"]) == 1)
            async with one.gateway() as first, two.gateway() as second:
                far = await listening(two, second, "hush/home/b")
                writer = await first.connect("writer")
                await acknowledged(writer, Publish("hush/home/b", b"y", 1, packet_id=1))
                assert await got(far, 1) == [b"y"], "at once: nothing lacks"
            nursery.cancel_scope.cancel()


async def test_what_an_earlier_run_published_is_known_when_it_comes_back(tmp_path: Path) -> None:
    one = House(tmp_path / "one", {"home": LINK}, {}, None)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            await one.daemon.hold(LINK)
            async with one.gateway() as first:
                writer = await first.connect("writer")
                await acknowledged(writer, Publish("hush/home/a", b"1", 1, packet_id=1))
                answers = hold_answers(one.daemon)
                await writer.send(Publish("hush/home/a", b"2", 1, packet_id=2))
                await until(lambda: len(one.daemon.published) == 2)
            answers.set()
            async with one.gateway() as first:
                reader = await listening(one, first, "hush/home/#")
                assert await got(reader, 1) == [b"2"], "of which the run before did not hear"
                await until(lambda: one.counters.as_dict()["network_arrived"] == 2)
                with trio.move_on_after(0.1):
                    raise AssertionError(f"again: {await reader.next()}")
            nursery.cancel_scope.cancel()


async def test_qos_0_waits_in_no_session(tmp_path: Path) -> None:
    async with houses(tmp_path) as (_, two, first, second):
        reader = await listening(two, second, "hush/home/#", clean=False, expiry=1_000)
        await reader.stream.aclose()
        writer = await first.connect("writer")
        await writer.send(Publish("hush/home/a", b"zero"))
        await acknowledged(writer, Publish("hush/home/a", b"one", 1, packet_id=1))
        await until(lambda: two.counters.as_dict()["network_arrived"] == 2)
        back = await second.connect("listener", clean=False, expiry=1_000)
        assert await got(back, 1) == [b"one"]


async def test_qos_0_is_not_kept_for_a_daemon_that_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_publisher, "ONCE_WITHIN", 0.1)
    async with houses(tmp_path) as (one, two, first, second):
        reader = await listening(two, second, "hush/home/#")
        writer = await first.connect("writer")
        one.daemon.stop()
        await writer.send(Publish("hush/home/a", b"lost"), Publish("hush/home/a", b"state", retain=True))
        await writer.send(Publish("hush/home/a", b"one", 1, packet_id=1))
        await trio.sleep(0.3)
        async with trio.open_nursery() as nursery:
            await one.daemon.start(nursery)
            assert await writer.next() == PubAck(1)
            assert await got(reader, 2) == [b"state", b"one"]
            await until(lambda: one.counters.as_dict()["network_refused"] == 1)
            nursery.cancel_scope.cancel()


async def test_a_program_reads_what_an_alias_carries(tmp_path: Path) -> None:
    async with (
        houses(tmp_path) as (_, two, first, _),
        hushcast.connect(two.daemon.socket) as daemon,
        daemon.subscribe(LINK) as messages,
    ):
        writer = await first.connect("writer")
        await writer.send(Publish("hush/home/kitchen", b"21", retain=True))
        found = (await anext(messages)).mqtt
        assert (found.payload, found.path, found.qos, found.retain) == (b"21", "kitchen", 0, True)
        await daemon.publish(LINK, b"bare")
        assert (await anext(messages)).mqtt.payload == b"bare"


async def test_a_plain_alias_carries_bare_payloads(tmp_path: Path) -> None:
    async with (
        houses(tmp_path, plain=True) as (_, two, first, _),
        hushcast.connect(two.daemon.socket) as daemon,
        daemon.subscribe(LINK) as messages,
    ):
        writer = await first.connect("writer")
        await writer.send(Publish("hush/home", b"21"))
        assert (await anext(messages)).payload == b"21"


@pytest.mark.parametrize("payload", [b"new", b""])
async def test_what_is_retained_here_and_was_not_handed_over_goes_with_the_next_start(
    tmp_path: Path, payload: bytes
) -> None:
    one = House(tmp_path / "one", {"home": LINK}, {"lamps/#": "home"}, None)
    two = House(tmp_path / "two", {"home": LINK}, {}, one)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for house in (one, two):
                await house.daemon.start(nursery)
            async with two.gateway() as second:
                reader = await listening(two, second, "hush/home/#")
                async with one.gateway() as first:
                    writer = await first.connect("writer")
                    await writer.send(Publish("lamps/1", b"old", retain=True))
                    assert await got(reader, 1) == [b"old"]
                    await until(lambda: one.store._records["gateway-unsent"] == {})
                    one.daemon.stop()
                    await writer.send(Publish("lamps/1", payload, retain=True))
                    await until(lambda: one.store._records["gateway-unsent"] != {})
                await one.daemon.start(nursery)
                async with one.gateway():
                    assert await got(reader, 1) == [payload]
                    await until(lambda: one.store._records["gateway-unsent"] == {})
            nursery.cancel_scope.cancel()
