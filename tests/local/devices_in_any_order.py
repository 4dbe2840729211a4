"""Devices of one person whose messages arrive in whatever order a test draws, without a network."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from hushcast_local.devices.circle_records import OwnCircle
from hushcast_local.devices.device_circle import DeviceCircle
from hushcast_local.devices.invitations import _joined, _welcome
from hushcast_node.counters import COUNTERS
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.content.topics import Topic
from hushcast_protocol.devices.circle_secrets import CircleSecret, first_keys
from hushcast_protocol.devices.shared_entries import DeviceValue, write_entry
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer

EPOCH = 3600
CALENDAR = Calendar(EPOCH)
SETTLED = 16  # epochs in which all that is said arrives, after which all that can come together has


class Unordered:
    """Devices, and what was said and has not arrived yet; `draw` says what arrives when."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.now = 1_700_000_000.0
        self.devices: list[Unconnected] = []
        self.waiting: list[tuple[Unconnected, CircleSecret, bytes]] = []

    async def begin(self) -> Unconnected:
        """Let a first device begin a circle."""
        seed, agreement = Seed.draw(self.draw.randbytes), AgreementKey.draw(self.draw.randbytes)
        own = OwnCircle(seed, agreement, first_keys(self.draw.randbytes))
        own.state.write(seed, DeviceValue("device 0", agreement.public()))
        return Unconnected(self, own)

    async def arrive(self, part: float = 1.0) -> None:
        """Have so much of what waits arrive, in any order."""
        for _ in range(int(len(self.waiting) * part)):
            device, secret, payload = self.waiting.pop(self.draw.randrange(len(self.waiting)))
            if secret in device.secrets:
                await device.hear(secret, payload)

    async def arrive_but_at(self, device: Unconnected) -> None:
        """Have all arrive but what is for one device, which is away."""
        later = [one for one in self.waiting if one[0] is device]
        self.waiting = [one for one in self.waiting if one[0] is not device]
        await self.arrive()
        self.waiting += later

    async def settle(self) -> None:
        """Let all speak, and hear all that is said, for as long as it takes."""
        for _ in range(SETTLED):
            self.now += EPOCH
            for device in self.draw.sample(self.devices, len(self.devices)):
                if not device.is_over:
                    await device.circle.speak(CALENDAR.epoch(self.now))
                await self.arrive(self.draw.random())
            await self.arrive()

    def check_all_but(self, removed: set[bytes], of_what: str) -> None:
        """Fail unless all but those removed go on, with the same keys, and know each other alone."""
        staying = [device for device in self.devices if device.key not in removed]
        assert [device.is_over for device in staying] == [False] * len(staying), of_what
        assert len({device.own.keys for device in staying}) == 1, of_what
        for device in staying:
            assert device.own.removed() == removed, of_what
            assert device.own.living().keys() == {one.key for one in staying}, of_what

    @property
    def here(self) -> list[Unconnected]:
        """The devices that have not heard that they were removed."""
        return [device for device in self.devices if not device.is_over]


class Unconnected:
    """One device, which is the topics of its own circle: what it says waits until it arrives."""

    def __init__(self, all_of_them: Unordered, own: OwnCircle) -> None:
        self.all = all_of_them
        self.own = own
        self.is_over = False
        env = Environment(lambda: all_of_them.now, all_of_them.draw.randbytes, _no_threads)
        context = Context(env, MemoryStore(), Counters(COUNTERS), NoTracer(), self._spawn)
        self.circle = DeviceCircle(own, self, CALENDAR, context, lambda *_: None)  # type: ignore[arg-type]
        all_of_them.devices.append(self)

    @property
    def key(self) -> bytes:
        return self.own.key

    @property
    def secrets(self) -> list[CircleSecret]:
        """Under which it hears."""
        return [] if self.is_over else self.circle._secrets()

    async def invite(self) -> Unconnected:
        """Let in a new device."""
        seed, agreement = Seed.draw(self.all.draw.randbytes), AgreementKey.draw(self.all.draw.randbytes)
        entry = write_entry(seed, 1, DeviceValue(f"device {len(self.all.devices)}", agreement.public()))
        await self.circle.admit(entry)
        own = await _joined(seed, agreement, entry, _welcome(self.own), self.circle.today)
        return Unconnected(self.all, own)

    async def hear(self, secret: CircleSecret, payload: bytes) -> None:
        """Hear a payload, as `HiddenTopics` has it heard."""
        with suppress(PeerError):
            await self.circle._hear(secret, payload)

    async def say(self, topic: Topic, payload: bytes) -> None:
        for other in self.all.here:
            for secret in other.secrets:
                if other is not self and secret.topic() == topic:
                    self.all.waiting.append((other, secret, payload))

    async def close(self, topic: Topic) -> None:
        """Nothing is kept of topics."""

    def _spawn(self, task: Any, *_: Any) -> None:
        if task == self.circle.end:
            self.is_over = True


async def _no_threads(*_: Any) -> Any:
    raise NotImplementedError
