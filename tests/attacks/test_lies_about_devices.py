"""A removed device says of others that they were removed, or says again who was; it undoes no removal.

Nor is a new device locked out: who let it in draws a secret for it where another one did not know it. What
that one has done meanwhile counts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from device_thief import MADE_UP, Thief, lose_all, lose_nothing
from several_devices import EPOCH, SOON, Person, person

from hushcast_local.devices.circle_records import entry_change
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.devices.beats import Beat, seal_beat
from hushcast_protocol.devices.shared_entries import (
    DeviceValue,
    SharedEntry,
    write_entry,
)

PEN, FORGED = Seed(bytes(range(32))), Seed(b"another's" + bytes(23))
SETTLED = 8 * SOON  # who let in one that was left out has drawn a secret for it


def removal(by: Seed, counter: int, about: bytes) -> SharedEntry:
    return write_entry(by, counter, DeviceValue("x", bytes(32), True), about)


async def joined(some: Person, *pairs: tuple[int, int]) -> None:
    """Let one device let in another one, for each pair."""
    for inviter, other in pairs:
        link, _ = await some.devices[inviter].service.devices.invite(f"device {inviter + 1}")
        await some.devices[other].service.devices.join(link, f"device {other + 1}")
        await trio.sleep(EPOCH)


async def hear_each_other(some: Person, *numbers: int) -> None:
    """Let devices hear each other, in the topic of before as well."""
    for number in numbers:
        lose_nothing(some, number)
    for _ in range(3):
        for number in numbers:
            circle = some.circle(some.devices[number])
            if circle.own.former:
                await circle._tell(circle.own.former[0][0], circle._change_alone())
        await trio.sleep(4 * SOON)


@pytest.mark.slow
@pytest.mark.parametrize(("inviter", "lies"), [(0, True), (2, False)], ids=["a lie about a third", "no lie"])
@pytest.mark.parametrize("wait", range(3))
async def test_nobody_is_locked_out_as_a_new_device_comes_while_one_is_away(
    tmp_path: Path, inviter: int, lies: bool, wait: int
) -> None:
    """The new one takes the stolen one's place; who was away draws for those that it knows."""
    async with trio.open_nursery() as nursery:
        some = Person(nursery, tmp_path, 5)
        one, two, three, new, _ = some.devices
        await some.up()
        await joined(some, (0, 1), (1, 2), (0, 4))
        await trio.sleep(2 * SOON + 7 * wait)
        thief = Thief(some)
        await some.stop(two)
        await joined(some, (inviter, 3))
        await trio.sleep(SOON)
        await one.service.devices.remove("device 5")
        await trio.sleep(SOON)
        for number in (0, 2, 3):
            lose_all(some, number)
        some.network.lose_what_waits()
        await two.start(nursery)
        if lies:
            await thief.tell(some, removal(thief.own.seed, 901, some.circle(three).own.key))
            assert some.circle(three).own.key in some.circle(two).own.keys.without, "no attack"
        else:
            await two.service.devices.remove("device 5")
        await trio.sleep(EPOCH)
        for number in (0, 2, 3):
            lose_nothing(some, number)
        circle = some.circle(two)
        await circle._tell(circle.own.former[0][0], circle._change_alone())
        await trio.sleep(SETTLED)
        keys = [some.circle(device).own.keys for device in (one, two, three, new)]
        assert keys == [keys[0]] * 4
        assert some.are_equal(one, two, three, new)
        nursery.cancel_scope.cancel()


@pytest.mark.slow
@pytest.mark.parametrize("wait", range(3))
async def test_nobody_parts_where_a_new_device_removes_one_while_another_is_away(
    tmp_path: Path, wait: int
) -> None:
    """Nobody lies: the one that is back removes a third one before it has heard of the new one at all."""
    async with trio.open_nursery() as nursery:
        some = Person(nursery, tmp_path, 5)
        one, two, _, _, new = some.devices
        await some.up()
        await joined(some, (0, 1), (0, 2), (0, 3))
        await trio.sleep(2 * SOON + 5 * wait)
        await some.stop(two)
        await joined(some, (0, 4))
        await trio.sleep(2 * SOON)
        await new.service.devices.remove("device 3")
        await trio.sleep(2 * SOON)
        for number in (0, 4):
            lose_all(some, number)
        some.network.lose_what_waits()
        await two.start(nursery)
        await two.service.devices.remove("device 4")
        await trio.sleep(EPOCH / 4)
        lose_all(some, 1)
        await hear_each_other(some, 0, 1, 4)
        keys = [some.circle(device).own.keys for device in (one, two, new)]
        assert keys == [keys[0]] * 3
        assert some.are_equal(one, two, new)
        assert len(some.circle(two).own.removed()) == 2
        nursery.cancel_scope.cancel()


async def removed_while_away(some: Person, name: str) -> None:
    """Have the first remove one while the second is away; then that is back, and neither hears the other."""
    one, two, *_ = some.devices
    await some.stop(two)
    lose_all(some, 0)
    await one.service.devices.remove(name)
    some.network.lose_what_waits()
    await two.start(some.nursery)
    lose_all(some, 1)


@pytest.mark.parametrize("wait", range(2))
async def test_a_removal_that_a_removed_device_says_again_stays(tmp_path: Path, wait: int) -> None:
    """Two are stolen: each of two removes one of them, and neither has heard of the other's removal."""
    async with person(tmp_path, 4) as some:
        one, two, old, _ = some.devices
        await trio.sleep(SOON + 5 * wait)
        thief, old_key = Thief(some), some.circle(old).own.key
        await removed_while_away(some, "device 4")
        await two.service.devices.remove("device 3")
        await trio.sleep(EPOCH / 4)
        await thief.tell(some, removal(thief.own.seed, 2**40, old_key))
        await hear_each_other(some, 0, 1)
        assert some.circle(one).own.keys == some.circle(two).own.keys
        for device in (one, two):
            assert {old_key, thief.own.key} <= some.circle(device).own.removed()


@pytest.mark.parametrize("wait", range(2))
async def test_a_removed_device_does_not_undo_its_own_removal(tmp_path: Path, wait: int) -> None:
    """By one that it made up, which says that removal again and falls."""
    async with person(tmp_path, 4) as some:
        one, two, _, _ = some.devices
        await trio.sleep(SOON + 5 * wait)
        thief = Thief(some)
        await removed_while_away(some, "device 3")
        await thief.tell(some, write_entry(MADE_UP, 900, DeviceValue("y", bytes(32))))
        await two.service.devices.remove("device 4")
        await trio.sleep(EPOCH / 4)
        again = removal(MADE_UP, 2**40, thief.own.key)
        beat = Beat(MADE_UP.public(), some.circle(two).today, None, (again,))
        payload = seal_beat(thief.former.secret, MADE_UP, beat, thief.env.randomness)
        await thief.topics.say(thief.former.secret.topic(), payload)
        await trio.sleep(EPOCH / 4)
        await hear_each_other(some, 0, 1)
        for device in (one, two):
            assert thief.own.key in some.circle(device).own.removed()
        assert some.circle(one).own.keys == some.circle(two).own.keys


@pytest.mark.slow
@pytest.mark.parametrize("wait", range(4))
async def test_a_removal_holds_though_who_said_it_was_removed_since(tmp_path: Path, wait: int) -> None:
    """Nobody lies: who was away for both, and removes a third one, hears of them in their order."""
    async with person(tmp_path, 5) as some:
        one, two, three, *_ = some.devices
        await trio.sleep(SOON + 5 * wait)
        await some.stop(three)
        await one.service.devices.remove("device 5")
        await trio.sleep(2 * SOON)
        await two.service.devices.remove("device 1")
        await trio.sleep(2 * SOON)
        lose_all(some, 1)
        some.network.lose_what_waits()
        await three.start(some.nursery)
        await three.service.devices.remove("device 4")
        await trio.sleep(EPOCH / 4)
        lose_nothing(some, 1)
        for _ in range(3):
            for circle in (some.circle(two), some.circle(three)):
                if circle.own.former:
                    await circle._tell(circle.own.former[0][0], circle._change_alone())
            await trio.sleep(4 * SOON)
        assert some.circle(two).own.keys == some.circle(three).own.keys
        assert len(some.circle(two).own.removed()) == 3
        states = [{entry.stamp for entry in some.circle(device).own.state} for device in (two, three)]
        assert states[0] == states[1]


async def test_a_record_of_its_own_end_that_a_version_before_wrote_ends_no_device(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await trio.sleep(SOON)
        await some.circle(two)._store.write(
            entry_change(removal(some.circle(one).own.seed, 900, some.circle(two).own.key))
        )
        await some.stop(two)
        await two.start(some.nursery)
        await trio.sleep(3 * SOON)
        assert not some.circle(two).is_over
        assert some.are_equal(one, two)
