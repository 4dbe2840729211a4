"""Probing: drops messages on a subscriber's own topics at random relays, and learns from what arrives.

A probe has the tokens, the size and the seal of a publication that the subscription wants, and takes the same
way. Only who can open it, the topic's other subscribers, can tell; to them it carries a report.
"""

from __future__ import annotations

import structlog
import trio

from hushcast_node.connector import Connector
from hushcast_node.rosters import RosterKeeper
from hushcast_node.subscription import Subscription
from hushcast_node.topic_keys import TopicKeys
from hushcast_protocol.attributes import Number, Value
from hushcast_protocol.bodies import Content, compose
from hushcast_protocol.errors import DecodeError, PeerError, Refusal
from hushcast_protocol.frames import Drop, Receipt
from hushcast_protocol.predicates import Equals
from hushcast_protocol.reports import MAX_HEARD, decode_report, missed, write_report
from hushcast_protocol.tokens import published_tokens
from hushcast_protocol.topics import Interest
from hushcast_protocol.wire import RelayId
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.transports.base import TransportError

PROBES_AN_EPOCH = 24.0  # for each subscription; each is a message to all subscribers of its topic
PROBE_WITHIN = 300.0  # seconds after which a probe is lost: time for a restart, or for some detours
SETTLED = 300.0  # seconds after which a message that others received should have come here, too
WHOLE_AFTER = 30.0  # seconds from being ready until a message that others get is missed here
RECEIPT_WITHIN = 30.0  # seconds from the drop of a probe to its receipt

_LABEL = 8  # random bytes of a label that nobody subscribed to

log = structlog.get_logger("probing")


class Prober:
    """Probes for the subscriptions of one daemon."""

    def __init__(
        self,
        rosters: RosterKeeper,
        connector: Connector,
        keys: TopicKeys,
        env: Environment,
        counters: Counters,
        probes_an_epoch: float,
    ) -> None:
        """`probes_an_epoch` is the rate for each subscription; 0: none."""
        self._rosters = rosters
        self._connector = connector
        self._keys = keys
        self._env = env
        self._counters = counters
        self._rate = probes_an_epoch

    async def run(self, subscription: Subscription) -> None:
        """Probe for one subscription at random moments, until cancelled."""
        if not self._rate:
            return
        await subscription.ready.wait()
        subscription.coverage.whole_since = self._env.now()
        between = self._rosters.calendar.epoch_seconds / self._rate
        turn: list[RelayId] = []
        while True:
            await trio.sleep(between * self._env.uniform(0.5, 1.5))
            subscription.coverage.give_up(self._env.now() - PROBE_WITHIN)
            try:
                origins = self._rosters.current().origins
                turn = turn or self._env.sample(origins, len(origins))
                await self._probe(subscription, turn.pop())
            except (Refusal, TransportError, PeerError, IndexError) as error:
                log.debug("a probe was not sent", reason=str(error))

    async def _probe(self, subscription: Subscription, origin: RelayId) -> None:
        now = self._env.now()
        day = self._rosters.calendar.day(now)
        relay = self._rosters.relay(origin)
        trees = [planned.installation.tree for planned in subscription.on(day)]
        if relay is None or not trees or origin not in trees[0].parents:
            return
        # With several trees a probe may come by any of them, and proves nothing but its origin.
        way = trees[0].way(origin) if len(trees) == 1 else (origin,)
        topic = subscription.interest.topic
        key = await self._keys.get(topic, day)
        values = self._values(subscription.interest)  # as a publication that it wants
        heard = subscription.coverage.heard(now, SETTLED)
        report = write_report(self._env.sample(heard, MAX_HEARD))
        content = Content(report, values, probe=True)
        tokens = published_tokens(key, topic, values, self._env.randomness)
        message = compose(key, day, tokens, content, self._env.randomness)
        coverage = subscription.coverage
        coverage.sent(message.id, way, now)  # before the receipt: the probe may arrive first
        taken = False
        try:
            answer = await self._connector.drop(relay, Drop(message, None), RECEIPT_WITHIN)
            taken = isinstance(answer, Receipt) and answer.verdict == "accepted"
        finally:
            if not taken:  # a publisher would have gone to another origin
                coverage.withdraw(message.id)
        self._counters.add("probes_sent", int(taken))

    def take(self, subscription: Subscription, message: bytes, content: Content) -> list[bytes]:
        """Take a probe that came, one's own or another's; return the ids of messages found missing by it."""
        coverage, interest = subscription.coverage, subscription.interest
        coverage.arrived(message)
        if coverage.whole_since is None:
            return []
        try:
            report = decode_report(content.payload)
        except DecodeError:
            self._counters.add("messages_not_ours")
            return []
        since = self._env.now() - coverage.whole_since - WHOLE_AFTER
        knows = subscription.inbox.knows
        found = coverage.new_gaps(missed(report, interest.predicate, knows, SETTLED, since))
        self._counters.add("gaps_found", len(found))
        return found

    def _values(self, interest: Interest) -> dict[str, Value]:
        """Draw all attributes of the topic, those with conditions so that the subscription wants them."""
        values: dict[str, Value] = {
            attribute.name: self._env.below(attribute.last + 1)
            if isinstance(attribute, Number)
            else self._env.randomness(_LABEL).hex()
            for attribute in interest.topic.attributes
        }
        for condition in interest.predicate.conditions:
            if isinstance(condition, Equals):
                values[condition.attribute.name] = condition.value
            else:
                span = condition.high - condition.low + 1
                values[condition.attribute.name] = condition.low + self._env.below(span)
        return values
