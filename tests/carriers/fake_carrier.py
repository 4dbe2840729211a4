"""A carrier in memory: the least that keeps a carrier's promises (`runtime`), and faults on demand.

A `FakeNetwork` outlives the carriers of its members, as servers and relays do, and so does what a member has
`Kept` of its routes, as its disk does. Tests of what stands on a carrier run on this one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import trio

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import (
    Handover,
    Probing,
    RoutedInterest,
    Tokens,
    check_kept,
    check_no_terms,
    probed_often,
)
from hushcast_runtime.environment import Environment

NODES = 7  # that route to every subscriber
TRIES = 3  # of handing over one message, each to another of them
BATCH = 16  # messages handed in at once
MAX_WAITING = 1000  # messages that wait for one route; with more, none is taken
PAUSE = 1.0  # seconds before a batch is handed in again that was not taken


@dataclass(eq=False)
class Kept:
    """What is kept for one route."""

    tokens: dict[int, Tokens] = field(default_factory=dict)
    """By day."""
    waiting: dict[bytes, Message] = field(default_factory=dict)
    """By id, until taken or their day is over."""
    past: set[bytes] = field(default_factory=set)
    """Of these, those that are of days gone by, and were asked for."""
    began: int = 0
    """The day on which it did."""
    arrival: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    def wants(self, message: Message) -> bool:
        """Tell whether a message has the tokens."""
        return self.has(message, self.tokens.get(message.day))

    def has(self, message: Message, tokens: Tokens | None) -> bool:
        """Tell whether a message has these of its day."""
        return (
            tokens is not None
            and message.tokens[0] == tokens.trunk
            and not set(tokens.entries).isdisjoint(message.tokens)
        )

    def put(self, message: Message) -> None:
        """Let a message wait for the route."""
        self.waiting[message.id] = message
        self.arrival.unpark_all()


Member = dict[bytes, Kept]
"""The routes of one member, by name."""


class FakeNetwork:
    """What lies between the members, and how it fails."""

    def __init__(self, calendar: Calendar, now: Callable[[], float]) -> None:
        self.calendar = calendar
        self.now = now
        self.takers = [bytes([number]) * 32 for number in range(NODES)]
        self.messages: dict[bytes, Message] = {}
        """All that were taken, by id, oldest first: for tests to look at."""
        self.closed: str | None = None
        """Why nobody takes messages or keeps routes now."""
        self.days_kept = 0
        """For how many days what was taken is kept for those who come later."""
        self.silence = "nobody gave a receipt"
        self.lost_receipts: float = 0
        """How many receipts are still to be lost; the messages are not."""
        self.nodes = NODES
        """How many route to each subscriber."""
        self.said: dict[str, str] = {}
        """What a route says of itself besides."""
        self.delay = 0.0
        """Seconds that everything takes."""
        self.repeats = False
        """Whether every message is handed in twice."""
        self.shuffle: random.Random | None = None
        """By which what waits is handed in in another order than it came."""
        self.receipts = _set()
        """Receipts wait for it."""
        self.installed = _set()
        """Routes wait for it until they are ready."""
        self._members: list[Member] = []
        self._taken = trio.lowlevel.ParkingLot()

    def join(self) -> Member:
        """Return what a new member has kept."""
        member: Member = {}
        self._members.append(member)
        return member

    def sweep(self) -> list[Kept]:
        """Forget what belongs to days gone by; return what is kept of all routes."""
        found = [kept for member in self._members for kept in member.values()]
        for kept in found:
            kept.tokens = {day: held for day, held in kept.tokens.items() if not self._is_over(day)}
            for message in [one for one in kept.waiting.values() if self._is_over(one.day)]:
                if message.id not in kept.past:
                    del kept.waiting[message.id]
        return found

    def take(self, message: Message) -> str | None:
        """Take a message durably for everybody who wants it; return why not if that cannot be."""
        if message.day not in self.calendar.open_days(self.now()):
            return "its day is over or has not begun"
        readers = [kept for kept in self.sweep() if kept.wants(message)]
        if any(len(kept.waiting) >= MAX_WAITING for kept in readers):
            return "too many messages wait for a subscriber"
        self.messages[message.id] = message
        for kept in readers:
            kept.put(message)
        return None

    def lose_what_waits(self) -> None:
        """Lose what waits for all routes."""
        for kept in self.sweep():
            kept.waiting.clear()

    def kept(self, first: int) -> list[Message]:
        """Return what was published from a day on, as far as it is kept."""
        first = max(first, self.calendar.day(self.now()) - self.days_kept)
        return [one for one in self.messages.values() if one.day >= first] if self.days_kept else []

    async def arrived(self) -> None:
        """Return once nothing waits for any route."""
        while any(kept.waiting for kept in self.sweep()):
            await self._taken.park()

    def note_taken(self) -> None:
        """Note that a route was handed something."""
        self._taken.unpark_all()

    def _is_over(self, day: int) -> bool:
        return self.calendar.lapse(day) <= self.now()


class FakeCarrier:
    """One member's carrier, for one life of its daemon."""

    looking = None
    covering = None
    manner = NEWEST

    def __init__(
        self, network: FakeNetwork, member: Member, env: Environment, spawn: Callable[..., None]
    ) -> None:
        self._network = network
        self._member = member
        self._env = env
        self._spawn = spawn

    @property
    def calendar(self) -> Calendar:
        return self._network.calendar

    @property
    def probing(self) -> Probing:
        return probed_often(self.manner)

    def check_open(self) -> None:
        if self._network.closed is not None:
            raise Refusal(self._network.closed)

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> None:
        """One taker is enough: what it has, all have."""
        self.check_open()
        if taken:
            return
        network = self._network
        for taker in self._env.sample(network.takers, TRIES):
            handover.note_try(taker)
            await trio.sleep(network.delay)
            await network.receipts.wait()
            if (problem := network.take(message)) is not None:
                handover.note_failure(problem)
            elif network.lost_receipts > 0:
                network.lost_receipts -= 1
                handover.note_failure(network.silence)
            else:
                handover.note_receipt(taker)
                return

    def check_past(self, first: int) -> None:
        today = self.calendar.day(self._network.now())
        check_kept("the fake network", self._network.days_kept, first, today)

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, FakeRoute]:
        for name in self._member.keys() - {one.name for one in wanted}:
            del self._member[name]
        return {one.name: self._begun(one) for one in wanted}

    def keep(self, wanted: RoutedInterest) -> FakeRoute:
        check_no_terms(wanted)
        self.check_open()
        return self._begun(wanted)

    def _begun(self, wanted: RoutedInterest) -> FakeRoute:
        is_new = wanted.name not in self._member
        kept = self._member.setdefault(wanted.name, Kept())
        if is_new:
            kept.began = self.calendar.day(self._env.now())
        route = FakeRoute(self, self._network, self._member, kept, wanted, self._env)
        route.first = (None if is_new else kept.began) if wanted.since is None else wanted.since
        self._spawn(route.run)
        return route


class FakeRoute:
    """One interest, kept routed by a `FakeCarrier`."""

    def __init__(
        self,
        carrier: FakeCarrier,
        network: FakeNetwork,
        member: Member,
        kept: Kept,
        wanted: RoutedInterest,
        env: Environment,
    ) -> None:
        self.ready = trio.Event()
        self.first: int | None = None
        """The day from which on what is kept is to come, if any."""
        self._looks = trio.Event()
        self._carrier = carrier
        self._network = network
        self._member = member
        self._kept = kept
        self._wanted = wanted
        self._env = env
        self._probes = 0
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Keep the tokens of the days and hand in what arrives, until it ends."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_tokens)
                nursery.start_soon(self._hand_in)
                nursery.start_soon(self._look_back)

    def describe(self) -> dict[str, Any]:
        return {"nodes": self._network.nodes} | self._network.said

    def look_back(self) -> None:
        self.first = self._wanted.since
        self._looks.set()

    async def coverage(self) -> dict[str, Any]:
        return {"probes": self._probes}

    async def losses(self) -> dict[bytes, tuple[float, float]]:
        return {}

    async def probe(self, message: Message) -> bool:
        heard = _Heard()
        await self._carrier.hand_over(message, heard)
        self._probes += heard.taken
        return heard.taken

    async def end(self) -> None:
        self._scope.cancel()
        self._member.pop(self._wanted.name, None)
        self._network.note_taken()
        self.ready.set()
        await trio.lowlevel.checkpoint()

    async def forgotten(self) -> None:
        await trio.sleep(self._network.delay)

    async def _keep_tokens(self) -> None:
        calendar = self._network.calendar
        while True:
            await self._network.installed.wait()
            await trio.sleep(self._network.delay)
            today = calendar.day(self._env.now())
            for day in (today, today + 1):
                self._kept.tokens[day] = await self._wanted.tokens(day)
            self.ready.set()
            await trio.sleep(calendar.day_start(today + 1) - self._env.now())

    async def _look_back(self) -> None:
        await self.ready.wait()
        while True:
            self._looks = trio.Event()
            for message in self._network.kept(self.first) if self.first is not None else ():
                tokens = await self._wanted.tokens(message.day)
                if not self._wanted.knows(message.id) and self._kept.has(message, tokens):
                    self._kept.past.add(message.id)
                    self._kept.put(message)
            await self._looks.wait()

    async def _hand_in(self) -> None:
        kept = self._kept
        while True:
            if not (batch := list(islice(kept.waiting.values(), BATCH))):
                await kept.arrival.park()
                continue
            await trio.sleep(self._network.delay)
            if (shuffle := self._network.shuffle) is not None:
                batch = shuffle.sample(waiting := list(kept.waiting.values()), min(BATCH, len(waiting)))
            try:
                for _ in range(1 + self._network.repeats):
                    await self._wanted.take(batch)
            except Exception:  # not durable, so not taken
                await trio.sleep(PAUSE)
                continue
            for message in batch:
                kept.waiting.pop(message.id, None)
            self._network.note_taken()


class _Heard:
    """Hears whether anybody takes a probe."""

    taken = False

    def note_try(self, taker: bytes) -> None:
        pass

    def note_receipt(self, taker: bytes) -> None:
        self.taken = True

    def note_failure(self, reason: str) -> None:
        pass


def _set() -> trio.Event:
    event = trio.Event()
    event.set()
    return event
