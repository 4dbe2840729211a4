"""The way out: what MQTT clients publish goes into the daemon's outbox, and is acknowledged then."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import trio

import hushcast
from hushcast import control_messages
from hushcast_gateway.network.daemon_link import DaemonLink
from hushcast_gateway.network.latest_ids import LatestIds
from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_runtime.counters import Counters

MAX_WAITING = 1_000  # messages that wait for the daemon
MAX_WAITING_SIZE = 16 * 1024 * 1024  # bytes of these; 60 of the largest
MAX_OURS = 10_000  # ids of messages published here that are remembered, to tell them when they come back
ONCE_WITHIN = 10.0  # seconds that a message of QoS 0 waits for the daemon, as one that starts anew takes
RECEIPT_AGAIN = 5.0  # seconds until a receipt is asked for again


class TaggedPayload(NamedTuple):
    """What is published, and by what relays find who may read it."""

    topic: str
    """The topic's name, or its link."""
    payload: bytes
    tags: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "TaggedPayload(...)"


@dataclass(eq=False)
class _Handing:
    """A message that the daemon may have taken, and has not said so."""

    publication: NetworkPublication
    made: TaggedPayload
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    is_anew: bool = False
    """Whether the daemon may have taken something else that it was made into before."""
    settled: trio.Event = field(default_factory=trio.Event)
    """Set when it is known what the daemon has taken."""

    def may_be(self, payload: bytes) -> bool:
        return self.is_anew or self.made.payload == payload


@dataclass(eq=False)
class _Waiting:
    """A message that waits for its turn, or for the daemon."""

    publication: NetworkPublication
    scope: trio.CancelScope
    stored: trio.Event
    """Set when what it did here is on disk: no other house is to know more than this one after a kill."""
    lapsed: trio.Event = field(default_factory=trio.Event)

    def lapse(self) -> None:
        self.scope.cancel()
        self.lapsed.set()


class NetworkPublisher:
    """Hands messages to the daemon: those of a topic one after the other, and no topic waits for another."""

    def __init__(
        self,
        link: DaemonLink,
        make: Callable[[NetworkPublication], TaggedPayload | Reason],
        took: Callable[[NetworkPublication, bool], None],
        answer: Callable[[NetworkPublication, int], None],
        until_relay: bool,
        counters: Counters,
    ) -> None:
        """`make` makes what goes of a publication when it is handed over, or says why it does not go.

        What a message may be used for can have changed while it waited. `took` hears of each that the daemon
        took, or may have (`False`), before the next of its topic is made; `answer` takes what became of each.

        `until_relay`: a message is done when a relay has it, not when the outbox has it.
        """
        self._link = link
        self._make = make
        self._took = took
        self._answer = answer
        self._until_relay = until_relay
        self._counters = counters
        self._arrivals, self._departures = trio.open_memory_channel[_Waiting](MAX_WAITING)
        self._lanes: dict[str, deque[_Waiting]] = {}  # by topic, what waits behind the one under way
        self._places = Shares(MAX_WAITING)
        self._bytes = Shares(MAX_WAITING_SIZE)
        self._ours = LatestIds(MAX_OURS)
        self._handing: dict[bytes, _Handing] = {}  # by token
        self._lapsing: dict[str, _Waiting] = {}  # by topic: of the last that waits and would lapse

    def put(self, publication: NetworkPublication, stored: trio.Event) -> int | None:
        """Take a publication, to go once it is `stored`; return why it is refused where there is no room."""
        user, size = publication.user, len(publication.content)
        if not self._places.may_take(user) or not self._bytes.may_take(user, size):
            self._counters.add("network_refused")
            return Reason.QUOTA_EXCEEDED
        self.lapse(publication.retained_for)
        self._places.take(user)
        self._bytes.take(user, size)
        # What is retained at QoS 0 is waited for all the same: it is retained here.
        is_once = not (publication.message.qos or publication.retained_for or publication.is_will)
        deadline = trio.current_time() + ONCE_WITHIN if is_once else math.inf
        one = _Waiting(publication, trio.CancelScope(deadline=deadline), stored)
        if publication.retained_for and publication.lapses:
            self._lapsing[publication.retained_for] = one
        self._arrivals.send_nowait(one)
        return None

    def lapse(self, topic: str) -> None:
        """Give up what waits to be retained for a topic and lapses: there is something newer."""
        if (former := self._lapsing.pop(topic, None)) is not None:
            former.lapse()

    async def settled(self, payload: bytes) -> None:
        """Wait until `is_ours` knows of a message that came with this payload, if it was published here.

        It may come back before the daemon has said that it took it.
        """
        for handing in [one for one in self._handing.values() if one.may_be(payload)]:
            await handing.settled.wait()

    def is_ours(self, message_id: str) -> bool:
        """Tell whether a message that comes was published here."""
        return message_id in self._ours

    async def run(self) -> None:
        """Hand over until cancelled."""
        async with trio.open_nursery() as nursery:
            async for one in self._departures:
                if one.publication.delay:
                    nursery.start_soon(self._delay, nursery, one)
                else:
                    self._line_up(nursery, one)

    async def _delay(self, nursery: trio.Nursery, one: _Waiting) -> None:
        with trio.move_on_after(one.publication.delay):
            await one.lapsed.wait()
        self._line_up(nursery, one)

    def _line_up(self, nursery: trio.Nursery, one: _Waiting) -> None:
        topic = one.publication.lane
        if topic in self._lanes:
            self._lanes[topic].append(one)
        else:
            self._lanes[topic] = deque([one])
            nursery.start_soon(self._work, nursery, topic)

    async def _work(self, nursery: trio.Nursery, topic: str) -> None:
        """Hand over what there is of a topic, in order."""
        lane = self._lanes[topic]
        while lane:
            await self._send(nursery, lane.popleft())
        del self._lanes[topic]

    async def _send(self, nursery: trio.Nursery, one: _Waiting) -> None:
        reason = Reason.UNSPECIFIED_ERROR
        publication = one.publication
        with one.scope:
            await trio.lowlevel.checkpoint_if_cancelled()
            await one.stored.wait()
            reason = await self._hand_over(publication)
        if one.scope.cancelled_caught and publication.token in self._handing:
            self._took(publication, False)
            nursery.start_soon(self._look_for, one)
        elif self._until_relay and not reason:
            nursery.start_soon(self._await_relay, one)
        else:
            self._end(one, reason)

    def _end(self, one: _Waiting, reason: Reason) -> None:
        publication = one.publication
        self._places.give_back(publication.user)
        self._bytes.give_back(publication.user, len(publication.content))
        if self._lapsing.get(publication.retained_for) is one:
            del self._lapsing[publication.retained_for]
        self._settle(publication)
        if not one.lapsed.is_set():
            self._counters.add("network_refused" if reason else "network_published")
        self._answer(publication, reason)

    async def _hand_over(self, publication: NetworkPublication) -> Reason:
        while True:
            daemon = await self._link.get()
            try:
                await daemon.connection()  # what waits for it is made, and lapses, without it
                made = self._make(publication)
                if isinstance(made, Reason):
                    return made
                with self._handing_of(publication, made).scope:  # cancelled where it is to be made anew
                    taken = await daemon.enqueue(
                        made.topic,
                        made.payload,
                        attributes=made.attributes,
                        tags=made.tags,
                        token=publication.token,
                        open=True,  # the configuration says by which link topics travel, others are open
                    )
                    self._ours.add(taken.id)
                    self._took(publication, True)
                    self._settle(publication)
                    return Reason.SUCCESS
            except hushcast.UsageError:
                return Reason.TOPIC_NAME_INVALID
            except hushcast.Refusal:
                return Reason.QUOTA_EXCEEDED
            except hushcast.NoDaemon:
                self._link.give_up(daemon)

    async def _look_for(self, one: _Waiting) -> None:
        """Learn by which id a message that lapsed comes back, if the daemon had taken it all the same."""
        message_id = await self._id_of(one.publication)
        if message_id is not None:
            self._ours.add(message_id)
        self._end(one, Reason.UNSPECIFIED_ERROR)

    async def _await_relay(self, one: _Waiting) -> None:
        await self._id_of(one.publication)
        self._end(one, Reason.SUCCESS)

    async def _id_of(self, publication: NetworkPublication) -> str | None:
        """Return a publication's id once a relay has it, `None` where the daemon knows nothing of it."""
        while True:
            daemon = await self._link.get()
            try:
                return await _taken(daemon, publication.token)
            except hushcast.NoDaemon:
                self._link.give_up(daemon)

    def look_again(self) -> None:
        """Make anew what the daemon has not taken, where it may not go as it is: it may be away for long."""
        for handing in self._handing.values():
            if self._make(handing.publication) != handing.made:
                handing.scope.cancel()

    def _handing_of(self, publication: NetworkPublication, made: TaggedPayload) -> _Handing:
        if (handing := self._handing.get(publication.token)) is None:
            handing = self._handing[publication.token] = _Handing(publication, made)
        else:
            handing.made, handing.scope, handing.is_anew = made, trio.CancelScope(), True
        return handing

    def _settle(self, publication: NetworkPublication) -> None:
        """Note that it is known what the daemon has taken."""
        if (handing := self._handing.pop(publication.token, None)) is not None:
            handing.settled.set()


async def _taken(daemon: hushcast.Daemon, token: bytes) -> str | None:
    """Return the id of a publication when a relay has it, `None` where nobody knows of it any more."""
    while True:
        try:
            return (await daemon.ask(control_messages.AwaitRequest(token), control_messages.PublishAnswer)).id
        except hushcast.Waiting:
            await trio.sleep(RECEIPT_AGAIN)
        except hushcast.Refusal:
            return None  # the daemon never took it, or it left the outbox and the daemon was restarted since
