"""A device of a circle that will be removed, or was, has honest ones do what keeps the circle from going on.

It says secrets that nobody can follow, or writes where nobody can write any more; one that has not heard of
its removal it tells of removals of its own. Honest ones that only know different devices must come together.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from device_thief import MADE_UP, Thief, lose_all, lose_nothing
from several_devices import BEGUN, EPOCH, FAMILY, SOON, Person, held, person, private

from hushcast_protocol.base.crypto.sealed_box import seal_box
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, sign
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.content.topics import Interest, write_link
from hushcast_protocol.devices.beats import Beat, seal_beat
from hushcast_protocol.devices.circle_secrets import CircleSecret, NewSecret, take_secret
from hushcast_protocol.devices.shared_entries import DeviceValue, write_entry
from hushcast_protocol.devices.shared_state import COUNTED_A_DAY


async def member_says(some: Person, thief: Thief, generation: int, without: list[bytes]) -> CircleSecret:
    """Say a new secret for all, before it is removed itself, under the present one."""
    own, draw = thief.own, thief.env.randomness
    secret = CircleSecret.draw(draw)
    living = sorted(own.state.living().items())
    boxes = tuple((key, seal_box(value.agreement, secret.reveal(), draw)) for key, value in living)
    signed = sign(
        own.seed, SignaturePurpose.NEW_SECRET, NewSecret(generation, own.key, tuple(without), boxes)
    )
    beat = Beat(own.key, some.circle(some.devices[0]).today, None, (), (signed,))
    await thief.topics.say(own.keys.secret.topic(), seal_beat(own.keys.secret, own.seed, beat, draw))
    return secret


@pytest.mark.parametrize(
    ("generation", "without", "is_taken"),
    [(2**48 - 1, 0, False), (65, 0, False), (5, 64, True)],
    ids=["the highest", "far ahead", "without as many as there is room for"],
)
async def test_no_secret_of_a_member_makes_its_removal_impossible(
    tmp_path: Path, generation: int, without: int, is_taken: bool
) -> None:
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await trio.sleep(SOON)
        thief = Thief(some)
        secret = await member_says(some, thief, generation, [bytes([n]) * 32 for n in range(without)])
        await trio.sleep(SOON)
        assert {some.circle(device).own.keys.secret == secret for device in (one, two)} == {is_taken}
        await one.service.devices.remove("device 3")
        await trio.sleep(4 * SOON)
        assert some.circle(one).own.keys == some.circle(two).own.keys
        assert thief.own.key in some.circle(one).own.keys.without
        assert some.circle(one).own.keys.secret != secret


async def test_no_member_takes_what_is_sealed_to_another(tmp_path: Path) -> None:
    """It says of another device that its key is one of the thief's own; then it is removed."""
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await trio.sleep(SOON)
        thief, victim = Thief(some), some.circle(two).own.key
        title = thief.own.state.devices()[victim].title
        thief.own.state.write(thief.own.seed, DeviceValue(title, thief.own.agreement.public()), victim)
        await trio.sleep(2 * SOON)
        await one.service.devices.remove("device 3")
        await trio.sleep(2 * SOON)
        assert some.circle(one).own.keys == some.circle(two).own.keys
        change = some.circle(one).own.change
        assert change is not None
        with pytest.raises(AuthenticationError):
            take_secret(change, victim, thief.own.agreement)


@pytest.mark.parametrize("hides", [False, True])
async def test_one_that_was_misled_erases_no_circle(tmp_path: Path, hides: bool) -> None:
    """It is told, by the removed one, that the remover was removed, and draws a secret without that.

    The removed one may say so of itself, too, as if that one had heard.
    """
    async with person(tmp_path, 3) as some:
        one, two, _ = some.devices
        await trio.sleep(SOON)
        thief = Thief(some)
        today, own = some.circle(one).today, some.circle(one).own.key
        await some.stop(two)
        lose_all(some, 0)
        await one.service.devices.remove("device 3")
        await two.start(some.nursery)
        gone = (own, thief.own.key) if hides else (own,)
        entries = [write_entry(thief.own.seed, 900, DeviceValue("x", bytes(32), True), key) for key in gone]
        entries.append(write_entry(MADE_UP, 901, DeviceValue("y", bytes(32))))
        await thief.say(Beat(thief.own.key, today, bytes(512), tuple(entries)))
        await trio.sleep(2 * EPOCH)
        lose_nothing(some, 0)
        assert own in some.circle(two).own.keys.without, "no attack"
        beat = Beat(MADE_UP.public(), today, None)  # so that the misled one answers there
        payload = seal_beat(thief.former.secret, MADE_UP, beat, thief.env.randomness)
        await thief.topics.say(thief.former.secret.topic(), payload)
        await trio.sleep(2 * SOON)
        assert not some.circle(one).is_over


async def test_one_that_was_led_away_parts_no_others(tmp_path: Path) -> None:
    """It is led to a secret that is for it alone; what the others make of that they make alike."""
    async with person(tmp_path, 4) as some:
        one, two, three, _ = some.devices
        await trio.sleep(2 * SOON)
        thief = Thief(some)
        again = thief.beat_of(some, two)
        await some.stop(two)
        for number in (0, 2):
            lose_all(some, number)
        await one.service.devices.remove("device 4")
        lose_nothing(some, 0)
        await one.service.devices.circle._tell(thief.former.secret, some.circle(one)._change_alone())
        await trio.sleep(2 * SOON)
        assert some.circle(one).own.keys == some.circle(three).own.keys
        lose_all(some, 0)
        some.network.lose_what_waits()
        await two.start(some.nursery)
        secret, draw = CircleSecret.draw(thief.env.randomness), thief.env.randomness
        key = some.circle(two).own.key
        box = seal_box(thief.own.state.devices()[key].agreement, secret.reveal(), draw)
        said = NewSecret(thief.former.generation + 7, MADE_UP.public(), (), ((key, box),))
        signed = sign(MADE_UP, SignaturePurpose.NEW_SECRET, said)
        await thief.say(Beat(thief.own.key, some.circle(one).today, None, (), (signed,)))
        await trio.sleep(EPOCH)
        assert some.circle(two).own.keys.secret == secret, "no attack"
        for number in (0, 2):
            lose_nothing(some, number)
        await thief.topics.say(thief.former.secret.topic(), again)
        await thief.say(Beat(thief.own.key, some.circle(one).today, None))
        await trio.sleep(6 * SOON)
        assert some.circle(one).own.keys == some.circle(three).own.keys


@pytest.mark.slow
@pytest.mark.parametrize("wait", range(4))
async def test_two_that_remove_the_same_one_come_together_though_one_has_a_new_device(
    tmp_path: Path, wait: int
) -> None:
    """Neither has heard of the other, and only one knows the new device: whichever secret is higher."""
    async with trio.open_nursery() as nursery:
        some = Person(nursery, tmp_path, 4)
        one, two, stolen, new = some.devices
        await some.up()
        for first, other in ((one, two), (one, stolen)):
            link, _ = await first.service.devices.invite("device 1")
            await other.service.devices.join(link, f"device {some.devices.index(other) + 1}")
        await trio.sleep(SOON + 7 * wait)
        await some.stop(one)
        link, _ = await two.service.devices.invite("device 2")
        await new.service.devices.join(link, "device new")
        await trio.sleep(SOON)
        await one.start(nursery)
        await one.service.devices.remove("device 3")
        await two.service.devices.remove("device 3")
        await trio.sleep(10 * SOON)
        assert some.circle(one).own.keys == some.circle(two).own.keys == some.circle(new).own.keys
        assert some.are_equal(one, two, new)
        nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_who_writes_as_high_as_is_taken_undoes_nothing(tmp_path: Path) -> None:
    async with person(tmp_path, 3) as some:
        one, two, three = some.devices
        await one.service.subscribe(Interest(FAMILY))
        await trio.sleep(SOON + BEGUN)
        assert FAMILY.name in {name for _, name, _ in held(two)}
        circle = some.circle(one)
        await trio.sleep(circle._calendar.day_start(circle.today + 1) - one.env.now() + 1)
        some.circle(three).own.state.counter = (circle.today + 1) * COUNTED_A_DAY - 1
        await three.service.subscribe(Interest(private(1)))
        await trio.sleep(SOON)
        assert write_link(private(1)) in {value.link for value in circle.own.state.subscriptions()}, (
            "no attack"
        )
        await one.service.devices.remove("device 3")
        await one.service.subscribe(Interest(private(2)))
        await one.service.unsubscribe(FAMILY)
        await trio.sleep(SOON)
        assert some.are_equal(one, two), "what is written on the same day is heard"
        await some.stop(one)
        await one.start(some.nursery)
        await trio.sleep(30 * EPOCH + BEGUN)
        assert FAMILY.name not in {name for _, name, _ in held(one)}
        shared = some.circle(one).own.state.subscription(write_link(FAMILY), "")
        assert shared is not None
        assert shared.is_ended
        assert ("device 3", True) in {
            (told["name"], told["removed"]) for told in one.service.devices.describe()
        }
