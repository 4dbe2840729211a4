"""Outward: what MQTT clients publish goes into the daemon's outbox, and is acknowledged then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import trio

import hushcast
from hushcast import control_messages
from hushcast.keys import new_token
from hushcast_gateway.daemon_link import DaemonLink
from hushcast_gateway.latest_ids import LatestIds
from hushcast_protocol.base.shares import Shares, User
from hushcast_protocol.mqtt.interfaces import DoneCallback
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_runtime.counters import Counters

MAX_WAITING = 1_000  # messages that wait for the daemon
MAX_WAITING_SIZE = 16 * 1024 * 1024  # bytes of these; 60 of the largest
MAX_OURS = 10_000  # ids of messages published here that are remembered, to tell them when they come back
RECEIPT_AGAIN = 5.0  # seconds until a receipt is asked for again


class TaggedPayload(NamedTuple):
    """What is published, and the tags by which relays find who may read it."""

    payload: bytes
    tags: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "TaggedPayload(...)"


@dataclass(frozen=True)
class OutgoingMessage:
    """A message for the network, with whom to tell what became of it."""

    topic: str
    payload: bytes
    done: DoneCallback
    delay: float = 0.0
    """Seconds that it waits first."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    make: Callable[[bytes], TaggedPayload | Reason] = TaggedPayload
    """Makes of the payload what goes, when it is handed over, or says why it does not.

    What a message may be used for can have changed while it waited.
    """

    retained: str = ""
    """The one name of the topic that it is to be retained for; empty for none."""
    lapses: bool = False
    """Whether it is not to go once there is something newer to be retained."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    """Cancelled when it lapses."""
    token: bytes = field(default_factory=new_token)
    """By which the daemon knows it, whatever it was made into."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "OutgoingMessage(...)"


@dataclass(eq=False)
class _Handing:
    """A message that the daemon may have taken, and has not said so."""

    leaving: OutgoingMessage
    made: TaggedPayload
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    is_anew: bool = False
    """Whether the daemon may have taken something else that it was made into before."""
    settled: trio.Event = field(default_factory=trio.Event)
    """Set when it is known what the daemon has taken."""

    def may_be(self, payload: bytes) -> bool:
        return self.is_anew or self.made.payload == payload


class NetworkPublisher:
    """Hands messages to the daemon, each as soon as it can."""

    def __init__(self, link: DaemonLink, until_relay: bool, counters: Counters) -> None:
        """`until_relay`: a message is done when a relay has it, not when the outbox has it."""
        self._link = link
        self._until_relay = until_relay
        self._counters = counters
        self._arrivals, self._departures = trio.open_memory_channel[tuple[OutgoingMessage, User]](MAX_WAITING)
        self._places = Shares(MAX_WAITING)
        self._bytes = Shares(MAX_WAITING_SIZE)
        self._ours = LatestIds(MAX_OURS)
        self._handing: dict[bytes, _Handing] = {}  # by token
        self._lapsing: dict[str, OutgoingMessage] = {}  # by topic: the last that waits and would lapse

    def put(self, leaving: OutgoingMessage, user: User) -> None:
        """Take a user's message; it is told when it is done, at once where there is no room for it."""
        size = len(leaving.payload)
        if not self._places.may_take(user) or not self._bytes.may_take(user, size):
            self._counters.add("network_refused")
            leaving.done(Reason.QUOTA_EXCEEDED)
            return
        self.lapse(leaving.retained)
        if leaving.retained and leaving.lapses:
            self._lapsing[leaving.retained] = leaving
        self._places.take(user)
        self._bytes.take(user, size)
        self._arrivals.send_nowait((leaving, user))

    def lapse(self, topic: str) -> None:
        """Give up what waits to be retained for a topic and lapses: there is something newer."""
        if (former := self._lapsing.pop(topic, None)) is not None:
            former.scope.cancel()

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
            async for leaving, user in self._departures:
                nursery.start_soon(self._send, leaving, user)

    async def _send(self, leaving: OutgoingMessage, user: User) -> None:
        reason = Reason.UNSPECIFIED_ERROR
        try:
            with leaving.scope:
                await trio.sleep(leaving.delay)
                reason = await self._hand_over(leaving)
            if leaving.scope.cancelled_caught and leaving.token in self._handing:
                await self._look_for(leaving)
        finally:
            self._places.give_back(user)
            self._bytes.give_back(user, len(leaving.payload))
            if self._lapsing.get(leaving.retained) is leaving:
                del self._lapsing[leaving.retained]
            self._settle(leaving)
        if not leaving.scope.cancelled_caught:
            self._counters.add("network_refused" if reason else "network_published")
        leaving.done(reason)

    async def _hand_over(self, leaving: OutgoingMessage) -> Reason:
        while True:
            daemon = await self._link.get()
            try:
                await daemon.connection()  # what waits for it is made, and lapses, without it
                publication = await self._enqueue(daemon, leaving)
                if isinstance(publication, Reason):
                    return publication
                if self._until_relay:
                    await _taken(daemon, leaving.token)
            except hushcast.UsageError:
                return Reason.TOPIC_NAME_INVALID
            except hushcast.Refusal:
                return Reason.QUOTA_EXCEEDED
            except hushcast.NoDaemon:
                self._link.give_up(daemon)
                continue
            return Reason.SUCCESS

    async def _look_for(self, leaving: OutgoingMessage) -> None:
        """Learn by which id a message that lapsed comes back, if the daemon had taken it all the same."""
        while True:
            daemon = await self._link.get()
            try:
                message_id = await _taken(daemon, leaving.token)
            except hushcast.NoDaemon:
                self._link.give_up(daemon)
                continue
            if message_id is not None:
                self._ours.add(message_id)
            return

    def look_again(self) -> None:
        """Make anew what the daemon has not taken, where it may not go as it is: it may be away for long."""
        for handing in self._handing.values():
            if handing.leaving.make(handing.leaving.payload) != handing.made:
                handing.scope.cancel()

    async def _enqueue(
        self, daemon: hushcast.Daemon, leaving: OutgoingMessage
    ) -> hushcast.Publication | Reason:
        """Return what the daemon has taken, or why it is not to go; errors as its own."""
        while True:
            made = leaving.make(leaving.payload)
            if isinstance(made, Reason):
                return made
            if (handing := self._handing.get(leaving.token)) is None:
                handing = self._handing[leaving.token] = _Handing(leaving, made)
            else:
                handing.made, handing.scope, handing.is_anew = made, trio.CancelScope(), True
            with handing.scope:
                publication = await daemon.enqueue(
                    leaving.topic,
                    made.payload,
                    attributes=leaving.attributes,
                    tags=made.tags,
                    token=leaving.token,
                )
                self._ours.add(publication.id)
                self._settle(leaving)
                return publication

    def _settle(self, leaving: OutgoingMessage) -> None:
        """Note that it is known what the daemon has taken."""
        if (handing := self._handing.pop(leaving.token, None)) is not None:
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
