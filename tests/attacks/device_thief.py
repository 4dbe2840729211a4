"""Whoever has a device of a person's that was removed from its circle, and what it knew."""

from __future__ import annotations

import trio
from fake_daemon import FakeDaemon
from several_devices import EPOCH, SOON, Person

from hushcast_local.devices.circle_records import OwnCircle
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.devices.beats import Beat, seal_beat
from hushcast_protocol.devices.circle_secrets import CircleKeys, CircleSecret, draw_secret
from hushcast_protocol.devices.shared_entries import SharedEntry

MADE_UP = Seed(b"made-up device" + bytes(18))


class Thief:
    """Whoever has a device of a person's, with all that it knew before it was removed."""

    def __init__(self, some: Person) -> None:
        device = some.devices[-1]
        self.own: OwnCircle = some.circle(device).own
        self.former = self.own.keys
        self.topics = device.service.devices._topics
        self.env = device.env
        self.drawn: list[CircleSecret] = []

    async def lead(self, some: Person, maker: Seed, ahead: int, without: bytes | None = None) -> None:
        """Tell of a secret that it drew itself, in the topic of before, as one that was kept from it.

        Or from another one, so that it is for itself as well.
        """
        gone = without or self.own.key
        living = {key: value for key, value in self.own.state.living().items() if key != gone}
        before = CircleKeys(
            self.former.secret, self.former.generation + ahead, bytes(16), self.former.without
        )
        signed, keys = draw_secret(maker, before, living, {gone}, self.env.randomness)
        self.drawn.append(keys.secret)
        await self.say(Beat(self.own.key, some.circle(some.devices[0]).today, None, (), (signed,)))

    def beat_of(self, some: Person, device: FakeDaemon) -> bytes:
        """Return what a device said once under the former secret, to be said again."""
        said = some.circle(device)._change_alone()
        return seal_beat(self.former.secret, some.circle(device).own.seed, said, self.env.randomness)

    async def tell(self, some: Person, *entries: SharedEntry) -> None:
        """Say entries in the topic of before, as if it had not been removed."""
        await self.say(Beat(self.own.key, some.circle(some.devices[0]).today, bytes(512), entries))
        await trio.sleep(2 * EPOCH)

    async def say(self, beat: Beat) -> None:
        payload = seal_beat(self.former.secret, self.own.seed, beat, self.env.randomness)
        await self.topics.say(self.former.secret.topic(), payload)


def lose_all(some: Person, number: int) -> None:
    """Have nothing arrive of what a device says from now on, until `lose_nothing`."""

    async def lost(topic: object, payload: bytes) -> None:
        pass

    some.devices[number].service.devices._topics.say = lost  # type: ignore[method-assign,assignment]


def lose_nothing(some: Person, number: int) -> None:
    del some.devices[number].service.devices._topics.say


async def removed_unheard(some: Person) -> tuple[Thief, bytes]:
    """Have the first of three remove the last, of which the second, which is away, hears nothing.

    Returns the thief, and what the one that is away said once.
    """
    one, two, _ = some.devices
    await trio.sleep(SOON)
    thief = Thief(some)
    again = thief.beat_of(some, two)
    await some.stop(two)
    lose_all(some, 0)
    await one.service.devices.remove("device 3")
    return thief, again


async def removed_for_some(some: Person) -> Thief:
    """Have the first of four remove the last, which the third hears, and the second, which is away, does not.

    The second is back then, and hears nothing of the two until `heard_again`.
    """
    one, two, *_ = some.devices
    await trio.sleep(SOON)
    thief = Thief(some)
    await some.stop(two)
    await one.service.devices.remove("device 4")
    await trio.sleep(SOON)
    for number in (0, 2):
        lose_all(some, number)
    some.network.lose_what_waits()
    await two.start(some.nursery)
    return thief


async def heard_again(some: Person) -> None:
    """Let all hear each other, for as long as it takes them to come together."""
    for number in (0, 2):
        lose_nothing(some, number)
    circle = some.circle(some.devices[1])
    await circle._tell(circle.own.former[0][0], circle._change_alone())  # as when it drew the secret
    await trio.sleep(6 * SOON)
