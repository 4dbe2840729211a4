"""The broker alone, without sockets and disk: work for a message as the world grows, and with 10,000 of all.

CPU time of this process, in turns. Work that the gateway has beside it, reading, writing, its loop, is not in
it: ratios are larger here than those of whole gateways.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec

from benchmarks.figures import Effort
from benchmarks.purpose_experiments.sides import FILTERING, NONE, Side, spelled
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.sections.purposes_section import PurposesOfUser, PurposesSection
from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.mqtt_broker import MqttBroker
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import Connect, Publish, RequestedSubscription, Subscribe
from hushcast_protocol.purposes.vocabulary import Vocabulary

AXES: dict[str, tuple[int, ...]] = {
    "reservations": (10, 100, 1_000, 10_000),
    "topics": (250, 500, 1_000, 2_000),
    "wildcards": (0, 1, 4, 16, 64),
    "purposes": (1, 4, 16, 64),
}
SIDES = (NONE, *(one for one in FILTERING if one.store == "cached" or one.mode == "publish"))
CARS = 250
MESSAGES = 5_000  # of one measurement
FEW = 50_000  # reservations that a list looks at in one measurement, in all
MANY = 10_000
LATE = 64  # changes that are measured one by one
_NOW = 1.0
_VERSION = 4


class World(msgspec.Struct, frozen=True):
    """What there is. Each car has a reservation as long as there are enough; each reads another's topics."""

    reservations: int = CARS
    topics: int = CARS
    wildcards: int = 0
    """Clients that read `cars/#` beside all others."""
    purposes: int = 2
    """Of each reservation."""
    clients: int = CARS
    subscriptions: int = 3
    """Of each client."""


class Sweep(msgspec.Struct, frozen=True):
    """µs of CPU for a message, at each place of an axis."""

    axis: str
    side: str
    values: tuple[tuple[int, float], ...]


class Large(msgspec.Struct, frozen=True):
    """A side with 10,000 reservations and as many subscriptions, in µs of CPU."""

    side: str
    message: float
    new: float = 0.0
    """A reservation for topics on which nothing is published."""
    changed: float = 0.0
    """One for busy topics, with the next message on one of them."""
    look: float = 0.0
    """What is left to do once a second after such changes, however many there were."""


class Outlet:
    """A client that takes everything."""

    def send(self, data: bytes) -> None:
        """Take it."""

    def has_room(self) -> bool:
        """Yes."""
        return True

    def close(self, last: bytes) -> None:
        """Never happens."""
        raise AssertionError(last)


class Inside:
    """A broker of one side in a world."""

    def __init__(self, side: Side, world: World) -> None:
        self._world = world
        named = [f"operations/{number}" for number in range(max(2, world.purposes))]
        self._aip = ",".join(named[: world.purposes])
        self._use = named[0]
        self.rules: Purposes | None = None
        if side.mode:
            section = PurposesSection(mode=side.mode, store=side.store)  # type: ignore[arg-type]
            user = PurposesOfUser(purposes=("operations",), reserve=("#",))
            self.rules = Purposes(section, {"": user}, Vocabulary(named), lambda: _NOW)
        self.broker = MqttBroker(os.urandom, _NOW, rules=self.rules)
        if self.rules is not None:
            self.rules.attach(self.broker, os.urandom)
        self.links = [self._connect(f"car{number}") for number in range(world.clients)]
        for number in range(world.reservations):
            self.reserve(number)
        for number, link in enumerate(self.links):
            for wanted in self._wanted(number):
                self._subscribe(link, wanted)
        self._packets = [Publish(topic, bytes(256)) for topic in self._topics()]
        self.measure(len(self._packets))

    def reserve(self, number: int, more: str = "") -> None:
        """Reserve a car's topics, which may or may not drive."""
        self._say(number, self._aip + more)

    def _say(self, number: int, terms: str) -> None:
        if self.rules is not None:
            said = f"!RESERVE/{spelled(f'cars/{number}/#')}{{{terms}}}"
            self.broker.receive(self.links[0], Publish(said, b"", 1, packet_id=1), _NOW)
            self.broker.stored(self.broker.ledger.made, _NOW)
            self.broker.ledger.take()
            while self.broker.has_more:
                self.broker.go_on(_NOW)

    def measure(self, count: int) -> float:
        """Pass messages; return the µs of CPU for one."""
        done = 0
        began = time.process_time()
        while done < count:
            for number, one in enumerate(self._packets[: count - done]):
                self.broker.receive(self.links[number % len(self.links)], one, _NOW)
            done += min(len(self._packets), count - done)
        return (time.process_time() - began) / count * 1e6

    def changes(self) -> tuple[float, float, float]:
        """Change reservations; return the µs of a new one, of one of a busy topic, and of the look after."""
        first = self._world.reservations
        began = time.process_time()
        for number in range(LATE):
            self.reserve(first + number)
        new = (time.process_time() - began) / LATE * 1e6
        for number in range(LATE):
            self._say(first + number, "!")
        busy = min(self._world.topics, first)
        began = time.process_time()
        for number in range(LATE):
            self.reserve(number % busy, "|operations/1")
            self.broker.receive(self.links[0], self._packets[number % busy], _NOW)
        changed = (time.process_time() - began) / LATE * 1e6
        began = time.process_time()
        if self.rules is not None:
            self.rules.tick()
        look = (time.process_time() - began) * 1e6
        for number in range(LATE):  # as it was
            self.reserve(number % busy)
        return new, changed, look

    def _connect(self, name: str) -> MqttConnection:
        greeted = self.broker.connect(Outlet(), Connect(_VERSION, name, clean=True), FullPermissions(), _NOW)
        assert greeted is not None
        return greeted[0]

    def _subscribe(self, link: MqttConnection, wanted: str) -> None:
        said = wanted if self.rules is None else f"!AP/{spelled(wanted)}{{{self._use}}}"
        self.broker.receive(link, Subscribe(1, [RequestedSubscription(said, 0)]), _NOW)

    def _topics(self) -> list[str]:
        return [f"cars/{number % CARS}/{number // CARS}" for number in range(self._world.topics)]

    def _wanted(self, number: int) -> list[str]:
        """Return a client's filters: another car's topics, and more that nobody publishes on."""
        found = ["cars/#"] if number < self._world.wildcards else []
        found += [f"cars/{(number - 1) % CARS}/+"] if number < CARS else []
        found += [f"orders/{number}/{one}" for one in range(self._world.subscriptions)]
        return found[: self._world.subscriptions]


def swept(effort: Effort, axes: Sequence[str] = tuple(AXES)) -> tuple[Sweep, ...]:
    """Measure all sides along each axis, all else as `World` has it."""
    found = []
    for axis in axes:
        values: dict[str, list[tuple[int, float]]] = {}
        for place in AXES[axis]:
            world = World(**{axis: place})
            for name, work in _measured(effort, world, SIDES).items():
                values.setdefault(name, []).append((place, work))
        found += [Sweep(axis, name, tuple(line)) for name, line in values.items()]
    return tuple(found)


def large(effort: Effort, many: int = MANY) -> tuple[Large, ...]:
    """Measure with as many reservations and subscriptions, a hundredth of these to `cars/#`.

    Not the lists: each message would take a million comparisons.
    """
    clients = max(1, many // 100)
    world = World(many - LATE, 2 * CARS, clients, clients=clients, subscriptions=many // clients)
    found = []
    for side in (NONE, *(one for one in FILTERING if one.store != "flat")):
        inside = Inside(side, world)
        count = _count(effort, side, world)
        message = min(inside.measure(count) for _ in range(effort.runs))
        if side.mode:
            some = [inside.changes() for _ in range(effort.runs)]
            found.append(Large(side.name, message, *(min(each) for each in zip(*some, strict=True))))
        else:
            found.append(Large(side.name, message))
    return tuple(found)


def _measured(effort: Effort, world: World, sides: Sequence[Side]) -> dict[str, float]:
    insides = {side: Inside(side, world) for side in sides}
    best: dict[str, float] = {}
    for _ in range(effort.runs):
        for side, inside in insides.items():
            taken = inside.measure(_count(effort, side, world))
            best[side.name] = min(taken, best.get(side.name, taken))
    return best


def _count(effort: Effort, side: Side, world: World) -> int:
    """Return how many messages to measure: few where each looks at a list."""
    if side.store == "flat" and side.mode != "subscribe":
        return effort.amount(max(10, FEW // world.reservations // (1 + world.wildcards)))
    return effort.amount(max(500, MESSAGES // (1 + world.wildcards)))
