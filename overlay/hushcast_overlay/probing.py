"""Probing: drops messages on a subscriber's own topics at random relays, and learns from what arrives.

A probe has the tokens, the size and the seal of a publication, and is dropped as one, at as many origins.
Only whoever knows the topic, and so can open it, can tell; to its other subscribers it carries a report. Of
the subscription's conditions it shows what relays hold, the one by which messages enter its tree, and no
other.
"""

from __future__ import annotations

import structlog
import trio

from hushcast_local.topic_keys import TopicKeys
from hushcast_overlay.dropping import Dropper
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.subscription import Subscription
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.content.attributes import Number, Value
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.predicates import Equals
from hushcast_protocol.content.reports import MAX_HEARD, decode_report, missed, write_report
from hushcast_protocol.content.tokens import entry_condition, published_tokens
from hushcast_protocol.content.topics import Interest
from hushcast_protocol.overlay.coverage import ways
from hushcast_protocol.overlay.installations import ListedRoot
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment

PROBES_AN_EPOCH = 24.0  # for each subscription; each is a message to all subscribers of its topic
PROBE_WITHIN = 300.0  # seconds after which a probe is lost: time for a restart, or for some detours
SETTLED = 300.0  # seconds after which a message that others received should have come here, too
WHOLE_AFTER = 30.0  # seconds from being ready until a message that others get is missed here

_LABEL = 8  # random bytes of a label that nobody subscribed to

log = structlog.get_logger("probing")


class Prober:
    """Probes for the subscriptions of one daemon."""

    def __init__(
        self,
        rosters: RosterKeeper,
        dropper: Dropper,
        keys: TopicKeys,
        env: Environment,
        counters: Counters,
        probes_an_epoch: float,
    ) -> None:
        """`probes_an_epoch` is the rate for each subscription; 0: none."""
        self._rosters = rosters
        self._dropper = dropper
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
        while True:
            await trio.sleep(between * self._env.uniform(0.5, 1.5))
            subscription.coverage.give_up(self._env.now() - PROBE_WITHIN)
            try:
                await self._probe(subscription)
            except Refusal as refusal:
                log.debug("a probe was not sent", reason=refusal.reason)

    async def _probe(self, subscription: Subscription) -> None:
        now = self._env.now()
        day = self._rosters.calendar.day(now)
        installations = [planned.installation for planned in subscription.on(day)]
        if not installations:
            return
        root = installations[0].root
        listed = root.relay if isinstance(root, ListedRoot) else None
        trees = [installation.tree for installation in installations]
        origins = self._rosters.current().origins
        topic = subscription.interest.topic
        key = await self._keys.get(topic, day)
        coverage = subscription.coverage
        heard = coverage.heard(now, SETTLED)
        report = write_report(self._env.sample(heard, MAX_HEARD))
        values = self._values(subscription.interest)
        tokens = published_tokens(key, topic, values, self._env.randomness)
        message = compose(key, day, tokens, Content(report, values, probe=True), self._env.randomness)
        probe = coverage.begin(message.id, now)
        try:
            await self._dropper.drop(message, probe)
        finally:
            if probe.taken:
                coverage.settle(message.id, ways(trees, origins, listed))
            else:
                coverage.withdraw(message.id)
        self._counters.add("probes_sent", int(bool(probe.taken)))

    def take(self, subscription: Subscription, message: bytes, content: Content) -> list[bytes]:
        """Take a probe that came, one's own or another's; return the ids of messages found missing by it."""
        coverage, interest = subscription.coverage, subscription.interest
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
        """Draw all attributes of the topic, that of the entry condition so that it lets the probe in.

        The entry condition shows in what relays hold anyway. The others are nobody's business: the
        subscription takes its probe whatever they are.
        """
        values: dict[str, Value] = {
            attribute.name: self._env.below(attribute.last + 1)
            if isinstance(attribute, Number)
            else self._env.randomness(_LABEL).hex()
            for attribute in interest.topic.attributes
        }
        entry = entry_condition(interest.predicate)
        if isinstance(entry, Equals):
            values[entry.attribute.name] = entry.value
        elif entry is not None:
            span = entry.high - entry.low + 1
            values[entry.attribute.name] = entry.low + self._env.below(span)
        return values
