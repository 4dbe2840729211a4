"""What a removed device tells one that was away counts for nobody once that one has heard of the removal.

It may make up devices, remove others, put other keys in place of authors', begin and end subscriptions. What
it wrote before it was removed stays, by the word of who removed it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from device_thief import MADE_UP, Thief, heard_again, lose_nothing, removed_for_some, removed_unheard
from several_devices import BEGUN, EPOCH, FAMILY, SOON, Person, held, person, private

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.content.topics import Interest, write_link
from hushcast_protocol.devices.circle_secrets import sealed_to
from hushcast_protocol.devices.shared_entries import (
    AuthorValue,
    DeviceValue,
    SubscriptionValue,
    ended_subscription,
    write_entry,
)

PEN, FORGED = Seed(bytes(range(32))), Seed(b"another's" + bytes(23))


def made_up() -> DeviceValue:
    return DeviceValue("not yours", bytes(range(32)))


def names(some: Person, number: int) -> set[tuple[str, bool]]:
    return {(one["name"], one["removed"]) for one in some.devices[number].service.devices.describe()}


@pytest.mark.parametrize("writes", [False, True], ids=["a device", "and what that one writes"])
async def test_a_made_up_device_falls_with_who_made_it_up(tmp_path: Path, writes: bool) -> None:
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        thief, _ = await removed_unheard(some)
        await two.start(some.nursery)
        entries = [write_entry(MADE_UP, 900, made_up())]
        if writes:
            entries.append(write_entry(MADE_UP, 901, AuthorValue("pen", FORGED.reveal())))
        await thief.tell(some, *entries)
        assert ("not yours", False) in names(some, 1), "no attack"
        lose_nothing(some, 0)
        await trio.sleep(4 * SOON)
        assert some.circle(one).own.keys == some.circle(two).own.keys
        assert some.are_equal(one, two)
        for number in (0, 1):
            assert names(some, number) == {("device 1", False), ("device 2", False), ("device 3", True)}
            assert some.devices[number].service.devices.authors() == []
        await one.service.devices.circle.renew()
        assert some.circle(one).own.change is not None
        assert MADE_UP.public() not in sealed_to(some.circle(one).own.change)


@pytest.mark.parametrize("by", ["itself", "a made-up device", "a secret"])
async def test_a_removal_by_a_removed_device_is_none(tmp_path: Path, by: str) -> None:
    """The one that was away draws a secret without who was not removed; all come together all the same."""
    async with person(tmp_path, 4) as some:
        one, two, three, _ = some.devices
        thief = await removed_for_some(some)
        gone = some.circle(three).own.key
        maker = MADE_UP if by == "a made-up device" else thief.own.seed
        if by == "a secret":
            await thief.lead(some, thief.own.seed, 0, without=gone)
            await trio.sleep(2 * EPOCH)
        else:
            removal = write_entry(maker, 901, DeviceValue("x", bytes(32), True), gone)
            await thief.tell(some, write_entry(MADE_UP, 900, made_up()), removal)
        assert gone in some.circle(two).own.keys.without, "no attack"
        await heard_again(some)
        assert [some.circle(device).is_over for device in (one, two, three)] == [False] * 3
        assert some.circle(one).own.keys == some.circle(two).own.keys == some.circle(three).own.keys
        assert some.are_equal(one, two, three)
        expected = {(f"device {number}", number == 4) for number in range(1, 5)}
        assert [names(some, number) for number in range(3)] == [expected] * 3


@pytest.mark.parametrize("hides", [False, True], ids=["", "and of itself"])
async def test_a_removed_device_has_nobody_remove_who_removed_it(tmp_path: Path, hides: bool) -> None:
    """Who was away is led away by it, and alone: the two others stay with each other."""
    async with person(tmp_path, 4) as some:
        one, two, three, _ = some.devices
        thief = await removed_for_some(some)
        kept = some.circle(one).own.keys
        gone = [some.circle(one).own.key] + [thief.own.key] * hides
        removals = [write_entry(thief.own.seed, 901, DeviceValue("x", bytes(32), True), key) for key in gone]
        await thief.tell(some, *removals)
        assert gone[0] in some.circle(two).own.keys.without, "no attack"
        await heard_again(some)
        for device in (one, three):
            assert not some.circle(device).is_over
            assert some.circle(device).own.keys == kept
        assert some.are_equal(one, three)


async def test_an_author_s_key_stays_the_one_that_was_shared(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await one.service.devices.share_author("pen", PEN)
        await trio.sleep(SOON)
        thief, _ = await removed_unheard(some)
        await two.start(some.nursery)
        await thief.tell(some, write_entry(thief.own.seed, 900, AuthorValue("pen", FORGED.reveal())))
        assert two.service.devices.author("pen") == FORGED, "no attack"
        lose_nothing(some, 0)
        await trio.sleep(4 * SOON)
        assert [device.service.devices.author("pen") for device in (one, two)] == [PEN, PEN]
        assert some.are_equal(one, two)


@pytest.mark.slow
async def test_subscriptions_neither_end_nor_begin_by_a_removed_device_s_word(tmp_path: Path) -> None:
    """What has begun on the one that was away meanwhile it keeps for itself, also after a restart."""
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await one.service.subscribe(Interest(FAMILY))
        await trio.sleep(SOON + BEGUN)
        thief, _ = await removed_unheard(some)
        await two.start(some.nursery)
        begun, planned = (write_link(private(number)) for number in (1, 2))
        await thief.tell(
            some,
            write_entry(thief.own.seed, 900, ended_subscription(write_link(FAMILY), "")),
            write_entry(thief.own.seed, 901, SubscriptionValue(begun, "", bytes(16))),
            write_entry(thief.own.seed, 902, SubscriptionValue(planned, "", bytes(16))),
        )
        await two.service.subscriber.subscribe(Interest(private(1)))  # as the plan does at its moment
        lose_nothing(some, 0)
        await trio.sleep(4 * SOON)
        await some.stop(two)
        await two.start(some.nursery)
        await trio.sleep(SOON + BEGUN)
        assert some.are_equal(one, two)
        assert {name for _, name, _ in held(one)} == {FAMILY.name}
        assert {name for _, name, _ in held(two)} == {FAMILY.name, private(1).name}
        assert [value.link for value in some.circle(two).own.state.subscriptions()] == [write_link(FAMILY)]


@pytest.mark.slow
async def test_what_a_device_wrote_before_it_was_removed_stays(tmp_path: Path) -> None:
    """Who removes it vouches for that: one that was away, and one that comes later, have it, too."""
    async with trio.open_nursery() as nursery:
        some = Person(nursery, tmp_path, 4)
        one, two, three, new = some.devices
        await some.up()
        for number, other in enumerate((two, three), 2):
            link, _ = await one.service.devices.invite("device 1")
            await other.service.devices.join(link, f"device {number}")
        await three.service.subscribe(Interest(FAMILY))
        await three.service.subscribe(Interest(private(1)))
        await three.service.devices.share_author("pen", PEN)
        some.circle(three).note_read(bytes(32))
        await trio.sleep(SOON)
        await three.service.unsubscribe(private(1))
        await trio.sleep(SOON)
        await some.stop(two)
        await one.service.devices.remove("device 3")
        await trio.sleep(SOON)
        await two.start(nursery)
        link, _ = await one.service.devices.invite("device 1")
        await new.service.devices.join(link, "device 4")
        await trio.sleep(4 * SOON)
        gone = {key for key, value in some.circle(one).own.state.devices().items() if value.is_removed}
        for device in (one, two, new):
            own = some.circle(device).own
            assert {value.link for value in own.state.subscriptions()} == {write_link(FAMILY), ""}
            assert own.state.is_read(bytes(16))
            assert device.service.devices.author("pen") == PEN
            assert gone.isdisjoint(entry.device for entry in own.state)
        assert some.are_equal(one, two, new)
        nursery.cancel_scope.cancel()


async def test_what_a_version_before_left_of_a_removed_device_is_vouched_for_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with person(tmp_path, 3) as some:
        one, two, three = some.devices
        await three.service.devices.share_author("pen", PEN)
        await trio.sleep(SOON)
        thief = Thief(some)
        circle = some.circle(one)
        title = thief.own.state.devices()[thief.own.key].title
        await circle.write(DeviceValue(title, thief.own.agreement.public(), True), thief.own.key)
        await some.stop(one)
        await one.start(some.nursery)
        await trio.sleep(4 * SOON)
        for device in (one, two):
            assert device.service.devices.author("pen") == PEN
            assert thief.own.key not in {entry.device for entry in some.circle(device).own.state}
        assert some.are_equal(one, two)
