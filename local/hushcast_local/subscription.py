"""A subscription: an interest that a carrier keeps routed, and the inbox for its messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import trio

from hushcast.handles import handle_of
from hushcast_local.inbox import Inbox
from hushcast_local.inbox_records import NAME_SIZE
from hushcast_local.recent_messages import RecentMessages
from hushcast_local.subscription_start import SubscriptionStart
from hushcast_local.topic_keys import TopicKeys
from hushcast_local.waiting_parts import WaitingParts
from hushcast_protocol.base import ground_truth, observations
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.bodies import Content, open_body
from hushcast_protocol.content.messages import Message, check_message
from hushcast_protocol.content.parts import read_part
from hushcast_protocol.content.predicates import parse_where, write_where
from hushcast_protocol.content.reports import REPORTED_WITHIN, decode_report, missed
from hushcast_protocol.content.topics import Interest, check_values, parse_topic, write_link
from hushcast_runtime.carriers.carrier import Route, Tokens
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

WHOLE_AFTER = 30.0  # seconds from being ready until a message that others get is missed here

_KIND = RecordKind(
    "interest",
    StateOwner.DAEMON,
    holds="subscriptions: topic, conditions, terms",
    lifetime="until unsubscribed",
)


class LocalSubscription:
    """One daemon's state for one interest, shared by all its applications; implements `RoutedInterest`."""

    def __init__(
        self,
        name: bytes,
        interest: Interest,
        beginning: SubscriptionStart,
        terms: Mapping[str, Any] | None,
        inbox: Inbox,
        keys: TopicKeys,
        context: Context,
    ) -> None:
        """`terms` are the carrier's business."""
        self.name = name
        self.interest = interest
        self.beginning = beginning
        self.terms = terms
        self.refusal: str | None = None
        """Why the network does not take it, for people."""
        self.inbox = inbox
        self.recent = RecentMessages()
        self._parts = WaitingParts(name, inbox, context.env, context.store)
        self.scope = trio.CancelScope()
        self._keys = keys
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._route: Route | None = None

    @property
    def route(self) -> Route:
        """How the carrier keeps it routed."""
        assert self._route is not None
        return self._route

    @route.setter
    def route(self, route: Route) -> None:
        self._route = route

    @property
    def handle(self) -> str:
        """What names it to people who have no link of its topic; none of the daemon's others has it."""
        return handle_of(self.name)

    @property
    def since(self) -> int | None:
        """The first day of which all that was published is wanted; `None`: no day before it began."""
        return self.beginning.since

    async def load(self) -> None:
        """Read back what was kept before a restart."""
        await self.inbox.load()
        await self._parts.load()

    async def lapse(self, before_day: int) -> None:
        """Forget what is of past days, if the time is certain."""
        await self.inbox.lapse(before_day)
        self._parts.lapse(before_day)

    async def tokens(self, day: int) -> Tokens:
        """Return the tokens by which the carrier routes it on a day."""
        return await self._keys.wanted(self.interest, day)

    def knows(self, message_id: bytes) -> bool:
        """Tell whether a message came before."""
        return self.inbox.knows(message_id)

    async def take(self, messages: list[Message]) -> None:
        """Take what arrived into the inbox; durable on return."""
        for message in messages:
            await self._take(message)
        await self.inbox.durable()  # for repeats, too: they may not be on disk yet

    def lose(self, count: int | None) -> None:
        """Tell applications that messages were lost where they waited; `None`: nobody knows how many."""
        self.inbox.note_lost(count)

    def miss(self, message_ids: list[bytes]) -> None:
        """Tell applications of messages that others may have, once of each; if none listens, how many."""
        if untold := self._note_gaps(message_ids):
            self.inbox.note_lost(untold)

    def refuse(self, reason: str) -> None:
        """Take notice that the network does not take it."""
        self.refusal = reason

    async def _take(self, message: Message) -> None:
        topic = self.interest.topic
        key = await self._keys.of_bodies(topic, message.day)
        if self.inbox.knows(message.id):  # perhaps since: another copy may have waited for the key as well
            return
        try:
            content = open_body(key, message)
            check_values(topic, {} if content.part_proof else content.values)
        except (AuthenticationError, DecodeError):
            self._counters.add("messages_not_ours")
            return
        self._tracer.observe(observations.Delivered(message.id, message.tokens, len(message.body)))
        if content.part_proof is not None:
            await self._take_part(message, content)
            return
        if content.probe:
            if self.inbox.pass_over(message.id, message.day):
                self._take_report(content)
            return
        # Wanted or not: reports to others must not reveal which messages are wanted. Of the past nothing is
        # reported: it came before others subscribed, and shows that this subscription asked for it.
        if not self.beginning.may_be_past(message.day):
            self.recent.received(message, self._env.now(), content.values)
        self._show(message, content)

    def _show(self, message: Message, content: Content) -> None:
        """Show applications a message that was opened, if it is what is wanted, and was not shown before."""
        if not self.interest.predicate.matches(content.values):
            if self.inbox.pass_over(message.id, message.day):
                self._counters.add("messages_excess")
        elif self.inbox.put(message.id, message.day, content, self.beginning.past_day(message.day)):
            self._tracer.tell(ground_truth.Delivered(self.interest.topic.name, message.id))

    async def _take_part(self, message: Message, content: Content) -> None:
        """Take a part; with the last one the whole comes, and what it is judged by is the whole's.

        Reports name neither: nobody could say of a part which condition it meets.
        """
        try:
            part = read_part(content, message.day)
        except (AuthenticationError, DecodeError):
            self._counters.add("messages_not_ours")
            return
        if self.scope.cancel_called:
            return  # it has ended, and what is kept of it is erased
        whole = await self._parts.take(part, message)
        if whole is None:
            return
        topic = self.interest.topic
        key = await self._keys.of_bodies(topic, whole.day)
        if not self._parts.holds(part):
            return  # another copy of the last part was quicker
        # From here to the end without a wait: what is kept of it goes in the commit that shows it.
        self._parts.end(part.whole)
        self.inbox.pass_over(message.id, message.day)
        try:
            check_message(whole)
            found = open_body(key, whole)
            check_values(topic, found.values)
            if found.probe or found.part_proof is not None:
                raise DecodeError("what came in parts is no message")
        except (AuthenticationError, DecodeError):
            self._counters.add("messages_not_ours")
            return
        self._show(whole, found)

    def _take_report(self, content: Content) -> None:
        """Find messages that the sender of a probe received and this subscription did not."""
        if self.recent.whole_since is None or self.interest.predicate.tags:
            return  # of messages that others received nobody says which tags they had
        try:
            report = decode_report(content.payload)
        except DecodeError:
            self._counters.add("messages_not_ours")
            return
        since = max(self.recent.whole_since + WHOLE_AFTER, self.inbox.forgot_at)
        if self._env.now() - since < REPORTED_WITHIN:
            return  # what it names may have come to others before
        self._note_gaps(missed(report, self.interest.predicate, self.inbox.knows))

    def _note_gaps(self, message_ids: list[bytes]) -> int:
        """Tell of those that are new; return of how many of these nobody heard."""
        found = self.recent.new_gaps(message_ids)
        self._counters.add("gaps_found", len(found))
        untold = 0
        for gap in found:
            untold += not self.inbox.note_gap(gap)
            self._tracer.tell(ground_truth.Gap(self.interest.topic.name, gap))
        return untold


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """A subscription as it lies in the store."""

    link: str
    where: str
    created: float
    terms: dict[str, Any] | None = None
    since: int | None = None


_decode = record_reader(_Stored, "subscription")


class KeptSubscription(NamedTuple):
    """A subscription as a restart finds it."""

    name: bytes
    interest: Interest
    created: float
    terms: Mapping[str, Any] | None
    since: int | None


async def keep(store: Store, subscription: LocalSubscription) -> None:
    """Write a subscription; durable on return."""
    held = subscription
    begun = held.beginning
    await store.write(interest_record(held.name, held.interest, begun.at, held.terms, begun.since))


def interest_record(
    name: bytes,
    interest: Interest,
    created: float,
    terms: Mapping[str, Any] | None = None,
    since: int | None = None,
) -> Change:
    """Return the record of an interest."""
    link, where = write_link(interest.topic), write_where(interest.predicate)
    stored = _Stored(link, where, created, None if terms is None else dict(terms), since)
    return Change(_KIND, name, encode(stored))


async def forget(store: Store, subscription: LocalSubscription) -> None:
    """Delete a subscription; durable on return."""
    await store.write(Change(_KIND, subscription.name, None))


async def kept(store: Store) -> list[KeptSubscription]:
    """Return the subscriptions kept, oldest first."""
    found: list[KeptSubscription] = []

    def take(name: bytes, value: bytes) -> None:
        stored = _decode(value)
        topic = parse_topic(stored.link)
        interest = Interest(topic, parse_where(stored.where, topic.attributes))
        name = sized(name, NAME_SIZE)
        found.append(KeptSubscription(name, interest, stored.created, stored.terms, stored.since))

    await restore(store, _KIND, take)
    return sorted(found, key=lambda one: one.created)
