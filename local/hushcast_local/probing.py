"""Probing: drops messages on a subscription's own topic at random moments, to measure its coverage.

A probe has the tokens, the size and the seal of a publication, and is handed over as one. Only those who know
the topic, and so can open it, can tell it apart; it carries a report to the topic's other subscribers. Of the
subscription's conditions it reveals only those that its carrier knows already (`TokenScheme.known`).
"""

from __future__ import annotations

import trio

from hushcast_local.subscription import SETTLED, Subscription
from hushcast_local.topic_keys import TopicKeys
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.content.attributes import Number, Value
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.predicates import Equals
from hushcast_protocol.content.reports import MAX_HEARD, write_report
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

PROBES_AN_EPOCH = 24.0  # for each subscription; each is a message to all subscribers of its topic

_LABEL = 8  # random bytes of a label that nobody subscribed to


class Prober:
    """Probes for the subscriptions of one daemon."""

    def __init__(self, calendar: Calendar, keys: TopicKeys, probes_an_epoch: float, context: Context) -> None:
        """`probes_an_epoch` is the rate for each subscription; 0: none."""
        self._calendar = calendar
        self._keys = keys
        self._rate = probes_an_epoch
        self._env = context.env
        self._counters = context.counters

    async def run(self, subscription: Subscription) -> None:
        """Probe for one subscription at random moments, until cancelled."""
        if not self._rate:
            return
        await subscription.route.ready.wait()
        subscription.recent.whole_since = self._env.now()
        if subscription.terms is not None:
            return  # messages that meet all of its conditions would show what the carrier is to hide
        between = self._calendar.epoch_seconds / self._rate
        while True:
            await trio.sleep(between * self._env.uniform(0.5, 1.5))
            try:
                sent = await subscription.route.probe(await self._compose(subscription))
            except (Refusal, UsageError) as error:
                log.debug("a probe was not sent", reason=str(error))
            else:
                self._counters.add("probes_sent", int(sent))

    async def _compose(self, subscription: Subscription) -> Message:
        now = self._env.now()
        day, topic = self._calendar.day(now), subscription.interest.topic
        report = write_report(self._env.sample(subscription.recent.heard(now, SETTLED), MAX_HEARD))
        values = self._values(subscription.interest)
        # One tag brings it, as it does a publication; all of them may be more than a message can have.
        tags = self._env.sample(sorted(subscription.interest.predicate.tags), 1)
        tokens = await self._keys.published(topic, day, values, tags)
        body_key = await self._keys.of_bodies(topic, day)
        return compose(body_key, day, tokens, Content(report, values, probe=True), self._env.randomness)

    def _values(self, interest: Interest) -> dict[str, Value]:
        """Draw all attributes of the topic, so that they meet the conditions that the carrier knows anyway.

        The other conditions must stay secret, and the subscription takes its probe whatever its attributes
        are.
        """
        values: dict[str, Value] = {
            attribute.name: self._env.below(attribute.last + 1)
            if isinstance(attribute, Number)
            else self._env.randomness(_LABEL).hex()
            for attribute in interest.topic.attributes
        }
        for known in self._keys.scheme.known(interest.predicate):
            values[known.attribute.name] = (
                known.value
                if isinstance(known, Equals)
                else known.low + self._env.below(known.high - known.low + 1)
            )
        return values
