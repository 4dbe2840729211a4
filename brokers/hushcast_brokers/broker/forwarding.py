"""Forwarding: finds the children that a message is for, and has it wait for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Protocol

import trio

from hushcast_brokers.broker.downstream import Downstream, hop_of
from hushcast_brokers.broker.matching import Matching, Place, child_of
from hushcast_protocol.base import observations
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.recent_forwards import RecentForwards
from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import MAX_SPOOL, Spool

ROOM_FOR_ALL = MAX_SPOOL * 3 // 4  # bytes; what is above is for children whose link is open
MANY = 64  # children of one message, after which others have their turn: each may cost a multiplication
NO_ROOM_PAUSE = 1.0  # seconds between looks whether there is room again


class FormerBrokers(Protocol):
    """What becomes of what waits for brokers that have left the tree."""

    def follow(self, children: Set[PublicKey], /) -> None:
        """Hear who the children are by the tree of now."""

    def divert(self, interested: Set[Place], /) -> Set[Place]:
        """Return for whom a message is to wait, given those who are interested by what is known now."""


class BrokerForwarding:
    """What one broker does with the messages that come."""

    def __init__(
        self,
        matching: Matching,
        former: FormerBrokers,
        spool: Spool,
        downstream: Downstream,
        calendar: Calendar,
        context: Context,
    ) -> None:
        self._matching = matching
        self._former = former
        self._spool = spool
        self._downstream = downstream
        self._calendar = calendar
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._recent = RecentForwards()

    async def take(self, messages: Iterable[Message], parent: PublicKey | None) -> None:
        """Have messages from the parent wait for whoever they are for; durable on return."""
        for message in messages:
            self._counters.add("messages_received")
            while self._spool.is_full(len(message.body)):  # noqa: ASYNC110 - many things make room
                await trio.sleep(NO_ROOM_PAUSE)  # the parent keeps what is not acknowledged
            if message.day < self._calendar.open_days(self._env.now())[0]:
                self._counters.add("messages_expired")
                continue
            try:
                check_message(message)
                is_repeated = self._recent.knows(message.id)
                sends = self.sends(message)
            except PeerError:
                self._counters.add("refused_form")
                continue
            self.put(sends)
            if len(sends) >= MANY:
                await trio.lowlevel.checkpoint()
            if self._tracer.is_on:
                outcome = "repeated" if is_repeated else "forwarded" if sends else "unmatched"
                size = len(message.body)
                self._tracer.observe(
                    observations.Received(message.id, message.tokens, parent, outcome, 0, size)
                )
        await self._spool.durable()

    def sends(self, message: Message) -> Sequence[HopMessage]:
        """Return whom a message is for, and has not gone to; raise `DecodeError` where tokens say nothing."""
        interested = self._matching.whom(message)
        if not interested:
            self._counters.add("messages_unmatched")
        fresh = _by_child(self._recent.fresh(message.id, self._former.divert(interested)))
        return [
            HopMessage(hop_of(child), form)
            for child in self._with_room(fresh.keys(), len(message.body))
            for form in self._matching.forms(message, fresh[child])
        ]

    def put(self, sends: Sequence[HopMessage]) -> None:
        """Have messages wait for their hops, and send them where links are open."""
        if sends:
            self._downstream.enqueue(self._spool.put(sends))

    def _with_room(self, children: Set[PublicKey], size: int) -> list[PublicKey]:
        """Return those for whom no more waits than may."""
        is_tight = self._spool.size > ROOM_FOR_ALL
        found = [
            child
            for child in children
            if self._spool.has_share(hop_of(child), size)
            and not (is_tight and not self._downstream.is_linked(child))
        ]
        self._counters.add("messages_over_share", len(children) - len(found))
        return found


def _by_child(places: Set[Place]) -> Mapping[PublicKey, list[Place]]:
    found: dict[PublicKey, list[Place]] = {}
    for place in places:
        found.setdefault(child_of(place), []).append(place)
    return found
