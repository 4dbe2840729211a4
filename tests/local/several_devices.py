"""A person with several devices, in one network that carries whatever it is given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from fake_carrier import FakeNetwork
from fake_daemon import EPOCH_SECONDS, FakeDaemon
from small_network import BEGIN

from hushcast_local.devices.device_circle import DeviceCircle
from hushcast_local.devices.subscription_plan import FOLLOWED_WITHIN
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.topics import Topic, make_topic
from hushcast_runtime.environment import simulated_environment

EPOCH = float(EPOCH_SECONDS)
SOON = 3 * EPOCH  # two beats and one that was lost
BEGUN = (FOLLOWED_WITHIN + 2) * EPOCH  # a beat, and the time in which what it tells begins
FAMILY = make_topic("family", ("kind",), TopicSecret(bytes(range(32))))


def private(number: int) -> Topic:
    return make_topic(f"topic {number}", (), TopicSecret(bytes([number]) * 32))


class Person:
    """Somebody with several devices in one network."""

    def __init__(self, nursery: trio.Nursery, folder: Path, count: int) -> None:
        self.nursery = nursery
        envs = [simulated_environment(f"device {number}", BEGIN) for number in range(count)]
        self.network = FakeNetwork(Calendar(EPOCH_SECONDS), envs[0].now)
        self.devices = [
            FakeDaemon(folder / f"{number}", env, network=self.network, probes_an_epoch=0)
            for number, env in enumerate(envs)
        ]

    async def up(self) -> None:
        for device in self.devices:
            await device.start(self.nursery)

    async def joined(self) -> None:
        """Let all join the first one's circle."""
        first, *others = self.devices
        for number, other in enumerate(others, 2):
            link, _ = await first.service.devices.invite("device 1")
            await other.service.devices.join(link, f"device {number}")

    async def stop(self, device: FakeDaemon) -> None:
        device.stop()
        await trio.sleep(1)

    def circle(self, device: FakeDaemon) -> DeviceCircle:
        return device.service.devices.circle

    def are_equal(self, *devices: FakeDaemon) -> bool:
        states = [self.circle(device).own.state for device in devices or self.devices]
        return len({state.summary(self.circle(self.devices[0]).today) for state in states}) == 1


@asynccontextmanager
async def person(folder: Path, count: int = 2) -> AsyncIterator[Person]:
    async with trio.open_nursery() as nursery:
        made = Person(nursery, folder, count)
        await made.up()
        await made.joined()
        yield made
        nursery.cancel_scope.cancel()


def held(device: FakeDaemon) -> set[tuple[str, str, str]]:
    return {(one["handle"], one["topic"], one["where"]) for one in device.service.subscriptions()}
