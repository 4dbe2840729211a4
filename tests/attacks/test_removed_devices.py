"""A device that was stolen, and removed, still has the circle's former secret, and keys; it wants back in.

What it says there reaches devices that have not heard of its removal. None of the others may follow it, and
what it wrote before it was removed may not keep them from sharing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from device_thief import MADE_UP, Thief, lose_nothing, removed_unheard
from several_devices import BEGUN, EPOCH, FAMILY, SOON, held, person, private

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_protocol.devices.beats import Beat, open_beat, seal_beat
from hushcast_protocol.devices.circle_secrets import (
    Expelled,
    draw_secret,
    take_secret,
)
from hushcast_protocol.devices.invitations import (
    Welcome,
    open_welcome,
    read_invitation,
    seal_joining,
)
from hushcast_protocol.devices.shared_entries import DeviceValue, ReadValue, write_entry
from hushcast_protocol.devices.shared_state import MARKS_KEPT, MAX_READ


@pytest.mark.parametrize("maker", [None, MADE_UP], ids=["the removed device", "a made-up one"])
async def test_none_takes_a_secret_that_a_removed_device_drew(tmp_path: Path, maker: Seed | None) -> None:
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await trio.sleep(SOON)
        thief = Thief(some)
        await one.service.devices.remove("device 3")
        await some.network.arrived()
        for ahead in (0, 1, 7):
            await thief.lead(some, maker or thief.own.seed, ahead)
        await trio.sleep(2 * SOON)
        keys = [some.circle(device).own.keys for device in (one, two)]
        assert keys[0] == keys[1]
        assert keys[0].secret not in thief.drawn
        assert some.are_equal(one, two)


async def test_who_was_away_is_led_away_alone(tmp_path: Path) -> None:
    """As documented it is, if the removed one is there first; those that know of the removal stay."""
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        thief, again = await removed_unheard(some)
        kept = some.circle(one).own.keys
        await thief.lead(some, MADE_UP, 7)
        await two.start(some.nursery)
        await trio.sleep(SOON)
        assert some.circle(two).own.keys.secret in thief.drawn, "no attack"
        lose_nothing(some, 0)
        await trio.sleep(3 * SOON)
        assert some.circle(one).own.keys == kept
        await thief.topics.say(thief.former.secret.topic(), again)  # so that both speak there once more
        await trio.sleep(3 * SOON)
        assert some.circle(one).own.keys == kept
        assert not some.circle(one).is_over


async def test_a_removed_device_expels_nobody(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await trio.sleep(SOON)
        thief = Thief(some)
        await one.service.devices.remove("device 3")
        await some.network.arrived()
        living = {MADE_UP.public(): DeviceValue("x", bytes(32))}
        gone = {device.service.devices.circle.own.key for device in (one, two)}
        signed, _ = draw_secret(MADE_UP, thief.former, living, gone, thief.env.randomness)
        await thief.say(Beat(thief.own.key, some.circle(one).today, None, (), (signed,)))
        await trio.sleep(SOON)
        assert some.are_equal(one, two)
        assert len(one.service.devices.describe()) == 3


async def test_an_invitation_does_not_let_a_removed_device_in_unseen(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, *_ = some.devices
        await trio.sleep(SOON)
        thief = Thief(some)
        await one.service.devices.remove("device 3")
        await trio.sleep(SOON)
        link, _ = await one.service.devices.invite("device 1")
        invitation = read_invitation(link)
        entry = write_entry(thief.own.seed, 99, DeviceValue("phone", thief.own.agreement.public()))
        found: list[Welcome] = []

        async def hear(payload: bytes) -> None:
            found.append(open_welcome(invitation, thief.own.agreement, payload))

        with trio.move_on_after(EPOCH):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(thief.topics.listen, invitation.topic(), hear)
                await trio.sleep(1)
                joining = seal_joining(invitation, entry, thief.env.randomness)
                await thief.topics.say(invitation.topic(), joining)
                await trio.sleep(5)
                nursery.cancel_scope.cancel()
        assert not found


@pytest.mark.slow
async def test_the_highest_counter_keeps_nobody_from_writing(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, three = some.devices
        await trio.sleep(SOON)
        some.circle(three).own.state.counter = 2**48 - 3
        await three.service.subscribe(Interest(private(1)))
        await trio.sleep(SOON)
        await one.service.devices.remove("device 3")
        await one.service.subscribe(Interest(FAMILY))
        await trio.sleep(SOON + BEGUN)
        assert FAMILY.name in {name for _, name, _ in held(two)}
        await some.stop(two)
        await two.start(some.nursery)
        await trio.sleep(SOON)
        assert some.are_equal(one, two)


@pytest.mark.slow
async def test_marks_of_days_to_come_take_no_room(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, three = some.devices
        await trio.sleep(SOON)
        own, today = some.circle(three).own, some.circle(three).today
        for number in range(MAX_READ + 1):
            own.state.write(own.seed, ReadValue(2**40, (number.to_bytes(16, "big"),)))
        await trio.sleep(12 * EPOCH)
        some.circle(one).note_read(bytes(32))
        await trio.sleep(SOON)
        assert some.circle(two).is_read(bytes(32))
        days = {
            value.day
            for entry in some.circle(two).own.state
            if (value := entry.read()) and hasattr(value, "day")
        }
        assert days <= {today, today + 1}
        assert MARKS_KEPT > 1


async def test_made_up_devices_are_not_remembered(tmp_path: Path) -> None:
    """Whoever has the secret can sign as many devices as it likes; what they say is held for none."""
    async with person(tmp_path, 2) as some:
        one, two = some.devices
        await trio.sleep(SOON)
        circle, secret = some.circle(one), some.circle(two).own.keys.secret
        for number in range(40):
            seed = Seed(number.to_bytes(32, "big"))
            beat = Beat(seed.public(), circle.today, bytes(512))
            with pytest.raises(PeerError):
                await circle._hear(secret, seal_beat(secret, seed, beat, two.env.randomness))
        assert len(circle._heard) <= 1


async def test_devices_that_nothing_can_be_sealed_to_keep_nobody_from_a_removal(tmp_path: Path) -> None:
    """A new secret is sealed to all devices that anybody told of; one such a key, and no secret followed."""
    async with person(tmp_path, 3) as some:
        one, two, three = some.devices
        await trio.sleep(SOON)
        own = some.circle(three).own
        for entry in (
            write_entry(MADE_UP, 900, DeviceValue("x", bytes(32))),
            write_entry(own.seed, 901, DeviceValue("x", bytes(32), True), b"short"),
        ):
            beat = Beat(own.key, some.circle(one).today, bytes(512), (entry,))
            payload = seal_beat(own.keys.secret, own.seed, beat, three.env.randomness)
            await three.service.devices._topics.say(own.keys.secret.topic(), payload)
        await trio.sleep(SOON)
        before = some.circle(one).own.keys
        await one.service.devices.remove("device 3")
        await trio.sleep(2 * SOON)
        keys = [some.circle(device).own.keys for device in (one, two)]
        assert keys[0] == keys[1] != before
        assert b"short" not in some.circle(one).own.state.devices()
        assert some.are_equal(one, two)


async def test_a_secret_that_a_misled_device_draws_for_a_removed_one_lets_that_say_nothing(
    tmp_path: Path,
) -> None:
    """The device that was away has heard of no removal but one that the thief made up, and draws for all."""
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        thief, again = await removed_unheard(some)
        await two.start(some.nursery)
        keys = thief.former
        for number in range(2):  # so that what it draws stands above what the remover drew
            gone = Seed(bytes([number]) * 32).public()
            entry = write_entry(thief.own.seed, 900, DeviceValue("x", bytes(32), True), gone)
            beat = Beat(thief.own.key, some.circle(one).today, bytes(512), (entry,))
            payload = seal_beat(keys.secret, thief.own.seed, beat, thief.env.randomness)
            await thief.topics.say(keys.secret.topic(), payload)
            await trio.sleep(SOON)
            change = some.circle(two).own.change
            assert change is not None
            keys = take_secret(change, thief.own.key, thief.own.agreement)
        assert keys.secret == some.circle(two).own.keys.secret, "no attack"
        lose_nothing(some, 0)
        await thief.topics.say(thief.former.secret.topic(), again)  # so that both speak there once more
        other = Seed(b"another device" + bytes(18))
        entry = write_entry(other, 901, DeviceValue("y", bytes(range(32))))
        beat = Beat(other.public(), some.circle(one).today, bytes(512), (entry,))
        for _ in range(24):
            await trio.sleep(EPOCH / 8)
            payload = seal_beat(keys.secret, other, beat, thief.env.randomness)
            with pytest.raises(PeerError):
                await some.circle(one)._hear(keys.secret, payload)
        assert other.public() not in some.circle(one).own.state.devices()
        change = some.circle(one).own.change
        assert change is not None
        with pytest.raises(Expelled):
            take_secret(change, thief.own.key, thief.own.agreement)
        assert some.circle(one).own.keys == some.circle(two).own.keys


@pytest.mark.parametrize("restarts", [False, True], ids=["", "and the others have started again"])
async def test_beats_of_one_that_has_come_are_answered_no_more(tmp_path: Path, restarts: bool) -> None:
    """They are of the day of the removal, and one device is still away, so that the others listen there."""
    async with person(tmp_path, 4) as some:
        one, two, three, _ = some.devices
        await trio.sleep(SOON)
        thief, again = Thief(some), Thief(some).beat_of(some, three)
        await some.stop(two)
        removed_on = some.circle(one).today
        await one.service.devices.remove("device 4")
        await trio.sleep(2 * SOON)
        if restarts:
            for device in (one, three):
                await some.stop(device)
                await device.start(some.nursery)
        heard: list[bytes] = []

        async def hear(payload: bytes) -> None:
            heard.append(open_beat(thief.former.secret, payload).device)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(thief.topics.listen, thief.former.secret.topic(), hear)
            await trio.sleep(1)
            heard.clear()
            for _ in range(3):
                await thief.topics.say(thief.former.secret.topic(), again)
                await trio.sleep(EPOCH)
            nursery.cancel_scope.cancel()
        assert some.circle(one).today <= removed_on + 1, "they would be too old"
        assert set(heard) <= {some.circle(three).own.key}, "but for what it said again"
        assert len(heard) == 3
        assert some.circle(one).own.former, "the others would have listened"


@pytest.mark.parametrize(
    ("own", "day", "epochs"),
    [(True, 0, 0), (False, 1, 0), (False, 0, 48)],
    ids=["its own beats", "another's of the day before, sealed anew", "another's of that day, later"],
)
async def test_who_was_removed_does_not_see_which_of_the_others_are_there(
    tmp_path: Path, own: bool, day: int, epochs: int
) -> None:
    """While one is away the others listen to the topic of before, which the removed one knows."""
    async with person(tmp_path, 4) as some:
        one, two, three, _ = some.devices
        thief, honest = Thief(some), {some.circle(device).own.key for device in (one, two)}
        old: list[bytes] = []
        say = three.service.devices._topics.say

        async def kept(topic: Topic, payload: bytes) -> None:
            old.append(payload)
            await say(topic, payload)

        three.service.devices._topics.say = kept  # type: ignore[method-assign]
        await trio.sleep(2 * SOON)
        assert len(old) >= 4
        await some.stop(three)
        circle = some.circle(one)
        if day:
            await trio.sleep(circle._calendar.day_start(circle.today + day) - one.env.now() + 1)
        await one.service.devices.remove("device 4")
        await trio.sleep(4 * SOON + epochs * EPOCH)
        heard: list[bytes] = []

        async def hear(payload: bytes) -> None:
            beat = open_beat(thief.former.secret, payload)
            if beat.device in honest:
                heard.append(beat.device)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(thief.topics.listen, thief.former.secret.topic(), hear)
            for _ in range(4):
                if own:
                    await thief.say(Beat(thief.own.key, some.circle(one).today, None))
                else:
                    await thief.topics.say(thief.former.secret.topic(), old.pop())
                await trio.sleep(EPOCH)
            nursery.cancel_scope.cancel()
        assert not heard
        assert some.circle(one).own.former, "the others would have listened"
