"""The way in: network topics that MQTT clients are subscribed to, and when reading them begins and ends.

One subscription of the daemon serves all clients. It begins some seconds after the first of them wants it,
and outlives the last by an hour or two, each drawn at random: neither shows when a client comes or goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import trio

import hushcast
from hushcast_gateway.network.daemon_link import DaemonLink
from hushcast_gateway.network_ways import NetworkSubscription
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.shares import Shares, User
from hushcast_protocol.mqtt.topics.topic_filters import is_name
from hushcast_protocol.mqtt.topics.ways import Way
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

MAX_WAYS = 256  # topics of the network at once: what a daemon has subscriptions
BEGIN_WITHIN = 10.0  # seconds until a subscription begins
LINGER = 3_600.0  # seconds, to twice as many, for which one goes on that nobody wants any more
REFUSED_AGAIN = 60.0  # seconds until a daemon that refused is asked again

_KIND = RecordKind(
    "gateway-way",
    StateOwner.GATEWAY,
    holds="topics of the network that it has subscribed to, and with which conditions",
    lifetime="until it unsubscribes there",
    bound=f"{MAX_WAYS}",
)
_OPEN, _ALIAS = b"o", b"a"
_ASKED = b"w"  # before the conditions that were asked for; earlier versions wrote one, or none
_AND = b"\0"  # between two of them


Take = Callable[[Way, hushcast.Message, Callable[[], None]], Awaitable[None]]
"""Takes a message that came; the function is called once nothing of it can be lost here."""


@dataclass(eq=False)
class _Reading:
    user: User
    """In whose share it is."""
    wanted: int = 0
    """Filters of clients that it serves."""
    before: bytes = b""
    """What an earlier run asked for, behind a mark."""
    source: NetworkSubscription | None = None
    """What it is in the network now."""
    changed: ChangeSignal = field(default_factory=ChangeSignal)
    """Something of the above is another."""
    look: trio.Event = field(default_factory=trio.Event)
    """Set when `source` may be another."""
    open: list[NetworkSubscription] = field(default_factory=list)
    """What is subscribed to: now, and what it was within two hours."""


class NetworkReader:
    """The network's topics that are read, and the tasks that read them."""

    def __init__(
        self,
        link: DaemonLink,
        source_of: Callable[[Way], NetworkSubscription | None],
        take: Take,
        env: Environment,
        counters: Counters,
    ) -> None:
        """`source_of` tells what a way is in the network, `None` where it is not configured any more."""
        self._link = link
        self._source_of = source_of
        self._take = take
        self._env = env
        self._counters = counters
        self._readings: dict[Way, _Reading] = {}
        self._places = Shares(MAX_WAYS)
        self._begins, self._beginnings = trio.open_memory_channel[Way](2 * MAX_WAYS)

    @property
    def count(self) -> int:
        """Topics that are read."""
        return len(self._readings)

    def has_room_for(self, way: Way, user: User) -> bool:
        """Tell whether a topic may be read that a user wants."""
        return way in self._readings or self._places.may_take(user)

    def want(self, way: Way, user: User) -> bool:
        """Note that one more filter wants a topic; who wants it first has it in its share until it ends.

        Return whether there is a place for it. Subscriptions from disk may want more than there are, by what
        the configuration says of their filters now, and have places beyond their users' shares.
        """
        if way not in self._readings and len(self._readings) >= MAX_WAYS:
            self._counters.add("network_subscriptions_refused")
            return False
        reading = self._reading(way, user)
        reading.wanted += 1
        reading.changed.tell()
        return True

    def release(self, way: Way) -> None:
        """Note that one less does."""
        reading = self._readings[way]
        reading.wanted -= 1
        reading.changed.tell()

    def look_again(self) -> None:
        """Ask anew what the topics are in the network; what they were is read for an hour or two more."""
        for reading in self._readings.values():
            reading.look.set()

    async def run(self, store: Store) -> None:
        """Read until cancelled; what an earlier run read and nobody wants any more is ended."""
        await restore(store, _KIND, self._take_up)
        async with trio.open_nursery() as nursery:
            async for way in self._beginnings:
                nursery.start_soon(self._live, way, store)

    def _take_up(self, key: bytes, value: bytes) -> None:
        name, _, first = key[1:].decode().partition("\0")
        value.decode()  # as it is once it is read
        if key[:1] not in (_OPEN, _ALIAS) or not is_name(name):
            raise DecodeError("a way that no gateway has")
        self._reading(Way(name, key[:1] == _OPEN, first), None).before = value

    def _reading(self, way: Way, user: User) -> _Reading:
        if way not in self._readings:
            self._readings[way] = _Reading(user)
            self._places.take(user)
            self._begins.send_nowait(way)
        return self._readings[way]

    async def _live(self, way: Way, store: Store) -> None:
        reading = self._readings[way]
        await trio.sleep(self._env.uniform(0.0, BEGIN_WITHIN))
        key = (_OPEN if way.is_open else _ALIAS) + f"{way.name}\0{way.first}".encode()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow, way, reading, key, store)
            await self._outlived(reading, lambda: reading.wanted > 0, lambda: True)
            nursery.cancel_scope.cancel()
        for source in reading.open:
            await self._end(source)
        await store.write(Change(_KIND, key, None))
        del self._readings[way]
        self._places.give_back(reading.user)
        if reading.wanted:  # somebody came while it ended
            self._reading(way, reading.user).wanted = reading.wanted

    async def _outlived(
        self, reading: _Reading, is_wanted: Callable[[], bool], lingers: Callable[[], bool]
    ) -> None:
        """Return when something has not been wanted for an hour or two, or at once if it does not linger."""
        is_over = False
        while not is_over:
            while is_wanted():
                await reading.changed.wait()
            seconds = self._env.uniform(LINGER, 2 * LINGER) if lingers() else 0.0
            with trio.move_on_after(seconds) as scope:
                while not is_wanted():
                    await reading.changed.wait()
            is_over = scope.cancelled_caught

    async def _follow(self, way: Way, reading: _Reading, key: bytes, store: Store) -> None:
        """Read a topic as it is in the network, and for a while longer as it was."""
        async with trio.open_nursery() as nursery:
            asked = _asked_before(reading.before, self._source_of(way))
            while True:
                reading.look = trio.Event()
                reading.source = self._source_of(way)
                reading.changed.tell()
                if reading.source is None:  # its alias was configured once
                    await store.write(Change(_KIND, key, b"\0"))
                else:
                    for source in (*asked, reading.source):
                        if source not in reading.open:
                            reading.open.append(source)
                            nursery.start_soon(self._serve, way, reading, source, key, store)
                asked = []
                await reading.look.wait()

    async def _serve(
        self, way: Way, reading: _Reading, source: NetworkSubscription, key: bytes, store: Store
    ) -> None:
        """Read a subscription until another has taken its place for long, and end it."""

        async def note() -> None:
            asked = _AND.join(one.where.encode() for one in reading.open)
            await store.write(Change(_KIND, key, _ASKED + asked))

        await note()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, way, source)
            # Messages may wait in it, if somebody is there for them.
            await self._outlived(reading, lambda: reading.source == source, lambda: reading.wanted > 0)
            nursery.cancel_scope.cancel()
        await self._end(source)
        reading.open.remove(source)
        reading.look.set()  # it may be wanted again meanwhile
        await note()

    async def _read(self, way: Way, source: NetworkSubscription) -> None:
        """Read a subscription until cancelled."""
        stored = _Stored()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stored.acknowledge)
            await self._take_all(way, source, stored)

    async def _take_all(self, way: Way, source: NetworkSubscription, stored: _Stored) -> None:
        while True:
            daemon = await self._link.get()
            try:
                async with daemon.subscribe(
                    source.topic, where=source.where, acknowledge="manual", open=True
                ) as messages:
                    async for message in messages:
                        self._counters.add("network_arrived")
                        await self._take(way, message, stored.came(messages, message))
            except hushcast.NoDaemon:
                self._link.give_up(daemon)
            except hushcast.HushcastError as error:
                self._counters.add("network_subscriptions_refused")
                log.warning("the daemon refuses a subscription", error=type(error).__name__)
                await trio.sleep(REFUSED_AGAIN)
            else:  # somebody ended it in the daemon; it is wanted all the same
                await trio.sleep(self._env.uniform(0.0, BEGIN_WITHIN))

    async def _end(self, source: NetworkSubscription | None) -> None:
        while source is not None:
            daemon = await self._link.get()
            try:
                await daemon.unsubscribe(source.topic, where=source.where)
            except hushcast.NoDaemon:
                self._link.give_up(daemon)
                continue
            except hushcast.HushcastError:
                log.warning("the daemon does not end a subscription")
            return


def _asked_before(before: bytes, source: NetworkSubscription | None) -> list[NetworkSubscription]:
    """Return what an earlier run subscribed to by the way that leads to a source now."""
    if source is None or not before.startswith(_ASKED):
        return []
    return [source._replace(where=one.decode()) for one in before.removeprefix(_ASKED).split(_AND)]


@dataclass(eq=False)
class _Came:
    messages: hushcast.Messages
    message: hushcast.Message
    is_stored: bool = False


class _Stored:
    """Acknowledges what came, in its order: to acknowledge one is to acknowledge all before it."""

    def __init__(self) -> None:
        self._waiting: deque[_Came] = deque()
        self._last: _Came | None = None
        self._news = trio.Event()

    def came(self, messages: hushcast.Messages, message: hushcast.Message) -> Callable[[], None]:
        """Note a message; call what is returned once nothing of it can be lost here."""
        one = _Came(messages, message)
        self._waiting.append(one)
        return partial(self._note, one)

    def _note(self, one: _Came) -> None:
        one.is_stored = True
        while self._waiting and self._waiting[0].is_stored:
            self._last = self._waiting.popleft()
            self._news.set()

    async def acknowledge(self) -> None:
        """Acknowledge what was noted, until cancelled; what fails is acknowledged with the next."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            assert self._last is not None
            with suppress(hushcast.HushcastError):
                await self._last.messages.acknowledge(self._last.message)
