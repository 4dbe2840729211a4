"""Devices of one person over a network: they come to share the same, through losses, absence and removal."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from several_devices import BEGUN, EPOCH, FAMILY, SOON, Person, held, person, private
from small_network import until

from hushcast_local.devices.circle_records import load_circle
from hushcast_local.devices.subscription_plan import FOLLOWED_WITHIN
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import AuthenticationError, Refusal, UsageError
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_protocol.devices.beats import open_beat


@pytest.mark.slow
async def test_what_one_subscribes_to_the_others_do_with_its_handle_and_what_it_ends_they_end(
    tmp_path: Path,
) -> None:
    async with person(tmp_path, 3) as some:
        one, *others = some.devices
        await one.service.subscribe(Interest(FAMILY, parse_where("kind = fire", FAMILY.attributes)))
        await one.service.devices.share_author("pen", Seed(bytes(range(32))))
        await trio.sleep(SOON + BEGUN)
        assert some.are_equal()
        assert len(held(one)) == 1
        assert all(held(other) == held(one) for other in others)
        assert all(other.service.devices.author("pen") == Seed(bytes(range(32))) for other in others)
        assert await others[1].service.unsubscribe(FAMILY)
        await trio.sleep(SOON + BEGUN)
        assert [held(device) for device in some.devices] == [set()] * 3
        assert some.are_equal()


@pytest.mark.slow
async def test_what_they_held_before_they_met_is_everybodys(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        some = Person(nursery, tmp_path, 2)
        await some.up()
        for number, device in enumerate(some.devices):
            for topic in range(3):
                await device.service.subscribe(Interest(private(10 * number + topic)))
            await device.service.subscribe(Interest(FAMILY))
        await some.joined()
        await trio.sleep(SOON + BEGUN)
        names = [{name for _, name, _ in held(device)} for device in some.devices]
        assert names[0] == names[1]
        assert len(names[0]) == 7
        nursery.cancel_scope.cancel()


async def test_nothing_of_it_shows_to_applications(tmp_path: Path) -> None:
    async with person(tmp_path) as some:
        await trio.sleep(SOON)
        for device in some.devices:
            service = device.service
            assert service.subscriptions() == []
            assert service.status()["subscriptions"] == 0
            assert service.devices.links() == []
            assert service.outbox() == []
            assert len(service.subscriber.subscriptions) >= 1


async def test_an_invitation_is_good_once_and_for_ten_minutes(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        some = Person(nursery, tmp_path, 3)
        await some.up()
        first, second, third = (device.service.devices for device in some.devices)
        with pytest.raises(Refusal, match="device invite"):
            _ = first.circle
        link, expires = await first.invite("laptop")
        assert expires == some.devices[0].env.now() + 600
        await second.join(link, "phone")
        with pytest.raises(Refusal, match="used"):
            await third.join(link, "tablet")
        await trio.sleep(1)
        with pytest.raises(UsageError, match="too old"):
            await third.join(link, "tablet")
        later, _ = await first.invite("laptop")
        with pytest.raises(Refusal, match="device leave"):
            await second.join(later, "phone")
        await trio.sleep(601)
        with pytest.raises(UsageError, match="too old"):
            await third.join(later, "tablet")
        for wrong in (later[:-1], "hushcast:abc", "news"):
            with pytest.raises(UsageError, match="again, whole"):
                await third.join(wrong, "tablet")
        told = [(one["name"], one["this"]) for one in first.describe()]
        assert told == [("laptop", True), ("phone", False)]
        await trio.sleep(1900)
        assert all(len(device.service.subscriber.subscriptions) <= 1 for device in some.devices)
        nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_a_device_that_was_away_for_a_week_catches_up(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, three = some.devices
        await trio.sleep(SOON)
        await some.stop(three)
        await one.service.subscribe(Interest(FAMILY))
        for number in range(5):
            await two.service.subscribe(Interest(private(number)))
        await trio.sleep(7 * EPOCHS_A_DAY * EPOCH)
        await some.stop(one)
        await three.start(some.nursery)
        await trio.sleep(SOON)
        assert some.are_equal(two, three), "from whoever is there"
        await one.start(some.nursery)
        await trio.sleep(SOON + BEGUN)
        assert some.are_equal()
        assert len(held(three)) == 6
        assert held(one) == held(two) == held(three)


@pytest.mark.slow
async def test_a_device_that_is_off_at_times_ends_what_another_ended(tmp_path: Path) -> None:
    async with person(tmp_path) as some:
        one, two = some.devices
        for number in range(5):
            await one.service.subscribe(Interest(private(number)))
        await trio.sleep(SOON + BEGUN)
        for number in range(5):
            await one.service.unsubscribe(private(number))
        await trio.sleep(SOON)
        ends = []
        while held(two):
            await some.stop(two)
            await trio.sleep(FOLLOWED_WITHIN / 8 * EPOCH)
            await two.start(some.nursery)
            await trio.sleep(FOLLOWED_WITHIN / 8 * EPOCH)
            ends.append(len(held(two)))
        assert len(ends) <= 5, "a restart draws no other moment"
        assert ends == sorted(ends, reverse=True)


@pytest.mark.slow
async def test_what_was_ended_and_begun_again_meanwhile_does_not_end(tmp_path: Path) -> None:
    async with person(tmp_path) as some:
        one, two = some.devices
        await one.service.subscribe(Interest(FAMILY))
        await trio.sleep(SOON + BEGUN)
        await one.service.unsubscribe(FAMILY)
        await trio.sleep(SOON)
        await one.service.subscribe(Interest(FAMILY))
        await trio.sleep(SOON + BEGUN)
        assert len(held(one)) == len(held(two)) == 1
        assert len(held(one)) == len(held(two)) == 1


@pytest.mark.slow
async def test_a_removed_device_learns_nothing_later_and_forgets_what_it_shared(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, three = some.devices
        await trio.sleep(SOON)
        before = some.circle(one).own.keys
        old = some.circle(three).own
        said: list[bytes] = []
        for device in (one, two):
            say = device.service.devices._topics.say

            async def noted(topic: Topic, payload: bytes, say=say) -> None:  # type: ignore[no-untyped-def]
                if topic != before.secret.topic():
                    said.append(payload)
                await say(topic, payload)

            device.service.devices._topics.say = noted  # type: ignore[method-assign]
        assert await one.service.devices.remove("device 3") == "device 3"
        await one.service.subscribe(Interest(FAMILY))
        await trio.sleep(SOON + BEGUN)
        assert some.circle(one).own.keys.secret != before.secret
        assert some.circle(one).own.keys.secret == some.circle(two).own.keys.secret
        assert held(two) == held(one) != set()
        assert held(three) == set()
        assert three.service.devices.describe() == []
        assert await load_circle(three.store, 0) is None, "nor does its disk"
        assert len(three.service.subscriber.subscriptions) == 0
        # Had it kept all, and listened on: nothing that was said since opens under what it knew.
        assert old.keys.secret == before.secret
        assert len(said) >= 2 * 8
        for payload in said:
            with pytest.raises(AuthenticationError):
                open_beat(old.keys.secret, payload)
        assert all(FAMILY.name not in repr(value.link) for value in old.state.subscriptions())
        topics = [held.interest.topic for held in two.service.subscriber.subscriptions]
        assert before.secret.topic() not in topics
        with pytest.raises(UsageError, match="no devices"):
            await one.service.devices.remove("device 3")
        with pytest.raises(Refusal, match="leave"):
            await one.service.devices.remove("device 1")


@pytest.mark.slow
async def test_who_was_away_when_one_was_removed_comes_after_and_says_nothing_to_that_one(
    tmp_path: Path,
) -> None:
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await trio.sleep(SOON)
        await some.stop(two)
        await one.service.devices.remove("device 3")
        await one.service.subscribe(Interest(FAMILY))
        await trio.sleep(5 * EPOCHS_A_DAY * EPOCH)
        await two.start(some.nursery)
        await trio.sleep(3 * SOON + BEGUN)
        assert some.circle(one).own.keys.secret == some.circle(two).own.keys.secret
        assert some.are_equal(one, two)
        assert held(one) == held(two) != set()
        assert some.circle(one).own.former == []


@pytest.mark.slow
@pytest.mark.parametrize("wait", range(8))
async def test_two_removals_at_the_same_moment_leave_one_secret_that_neither_knows(
    tmp_path: Path, wait: int
) -> None:
    """Both that were removed end their circle, whichever secret they hear first."""
    async with person(tmp_path, 4) as some:
        one, two, three, four = some.devices
        await trio.sleep(SOON + wait * EPOCH / 8)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.service.devices.remove, "device 3")
            nursery.start_soon(two.service.devices.remove, "device 4")
        await trio.sleep(4 * SOON)
        keys = [some.circle(device).own.keys for device in (one, two)]
        assert keys[0] == keys[1]
        assert len(keys[0].without) == 2
        assert some.are_equal(one, two)
        for device in (three, four):
            assert device.service.devices.describe() == []


@pytest.mark.slow
async def test_each_device_speaks_once_an_epoch_whatever_its_person_does(tmp_path: Path) -> None:
    async with person(tmp_path) as some:
        await trio.sleep(SOON)
        said: list[tuple[int, float]] = []
        for number, device in enumerate(some.devices):
            say = device.service.devices._topics.say

            async def noted(topic: Topic, payload: bytes, say=say, number=number) -> None:  # type: ignore[no-untyped-def]
                said.append((number, trio.current_time()))
                assert len(payload) in (4096, 16384, 65536)
                await say(topic, payload)

            device.service.devices._topics.say = noted  # type: ignore[method-assign]
        begin = trio.current_time()
        await trio.sleep(2 * EPOCH)
        for number in range(12):
            await some.devices[0].service.subscribe(Interest(private(number)))
        await trio.sleep(18 * EPOCH)
        took = (trio.current_time() - begin) / EPOCH
        for number in range(2):
            assert abs(sum(one == number for one, _ in said) - took) <= 2


async def test_what_was_read_on_one_is_not_shown_on_the_other_where_a_person_is_asked_for(
    tmp_path: Path,
) -> None:
    async with person(tmp_path) as some:
        one, two = some.devices
        for device in some.devices:
            await device.service.subscriber.subscribe(Interest(FAMILY))
        for number in range(4):
            await one.service.publish(FAMILY, Content(b"%d" % number))
        await some.network.arrived()
        feed = await one.service.subscribe(Interest(FAMILY))
        for _ in range(3):
            arrival = await feed.next()
            assert isinstance(arrival, tuple)
            feed.shown(arrival[0])
        await trio.sleep(SOON)
        there = await two.service.subscribe(Interest(FAMILY))
        got = await there.take(10)
        read = {message.payload for _, message in got if two.service.devices.is_read_elsewhere(message.id)}  # type: ignore[misc]
        assert len(got) == 4, "per device all of them come"
        assert len(read) == 3
        await until(lambda: some.are_equal(), SOON)


async def test_what_was_read_before_a_kill_is_told_after_it(tmp_path: Path) -> None:
    async with person(tmp_path) as some:
        one, two = some.devices
        await trio.sleep(SOON)
        feed = await one.service.subscribe(Interest(FAMILY))
        await one.service.publish(FAMILY, Content(b"x"))
        await some.network.arrived()
        arrival = await feed.next()
        assert isinstance(arrival, tuple)
        feed.shown(arrival[0])
        await some.stop(one)
        assert not two.service.devices.is_read_elsewhere(arrival[1].id)
        await one.start(some.nursery)
        await trio.sleep(SOON)
        assert two.service.devices.is_read_elsewhere(arrival[1].id)
        assert some.circle(one).own.unsaid == []
        assert some.are_equal()
