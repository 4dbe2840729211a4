"""The prober: drops messages on a subscription's own topic at random moments, to measure its coverage.

A probe has the seal of a publication, and size, tokens and attributes like those of messages that came lately
(`Likeness`), and is handed over as one. Only those who know the topic, and so can open it, can tell it apart.
Where nobody keeps what was published it carries a report to the topic's other subscribers. Of the
subscription's conditions it reveals only those that its carrier knows already (`TokenScheme.known`).
"""

from __future__ import annotations

import trio

from hushcast_local.subscription import LocalSubscription
from hushcast_local.topic_keys import TopicKeys
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.content.bodies import Content, compose, packed_values
from hushcast_protocol.content.likeness import OTHERS, Likeness, draw_likeness, draw_values
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.reports import (
    MAX_HEARD,
    REPORTED_WITHIN,
    SETTLED,
    ReportedMessage,
    write_report,
)
from hushcast_runtime.carriers.carrier import Carrier
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log

_OF_WHAT_CAME = 8  # and one of so many bytes that came: probes of eight subscribers weigh as much as these


class Prober:
    """Probes for the subscriptions of one daemon."""

    def __init__(
        self, carrier: Carrier, keys: TopicKeys, probes_an_epoch: float | None, context: Context
    ) -> None:
        """`probes_an_epoch` is the rate for each subscription; 0: none; `None`: as the carrier has it."""
        self._carrier = carrier
        self._calendar = carrier.calendar
        self._keys = keys
        self._rate = probes_an_epoch
        self._env = context.env
        self._counters = context.counters

    async def run(self, subscription: LocalSubscription) -> None:
        """Probe for one subscription at random moments, until cancelled."""
        if self._rate == 0 or not self._carrier.probing.a_day:
            return  # whatever the rate is, where nobody could probe
        await subscription.route.ready.wait()
        subscription.recent.whole_since = self._env.now()
        if subscription.terms is not None:
            return  # messages that meet all of its conditions would show what the carrier is to hide
        allowed = MAX_PAYLOAD
        like, waited = self._likeness(subscription), 0
        while True:
            await trio.sleep(self._between() * self._env.uniform(0.5, 1.5))
            came = subscription.recent.take_bytes() // _OF_WHAT_CAME
            allowed = min(MAX_PAYLOAD, allowed + self._carrier.manner.bytes_a_probe + came)
            if allowed >= like.size:
                chosen, like, waited = like, self._likeness(subscription), 0
            else:
                # A dear one is waited for: to send a smaller one instead would test small messages alone.
                waited += 1
                if waited % OTHERS:
                    continue
                # But one of any form goes meanwhile: who writes large messages is not to end all probes.
                chosen = self._likeness(subscription, is_of_any_form=True)
            allowed -= chosen.size
            await self._probe(subscription, chosen)

    def _between(self) -> float:
        """Return the seconds between two probes, in the mean."""
        if self._rate is not None:
            return self._calendar.epoch_seconds / self._rate
        return self._calendar.day_seconds / self._carrier.probing.a_day

    async def _probe(self, subscription: LocalSubscription, like: Likeness) -> None:
        try:
            sent = await subscription.route.probe(await self._compose(subscription, like))
        except (Refusal, UsageError) as error:
            log.debug("a probe was not sent", reason=str(error))
        else:
            self._counters.add("probes_sent", int(sent))

    def _likeness(self, subscription: LocalSubscription, is_of_any_form: bool = False) -> Likeness:
        interest = subscription.interest
        known = self._keys.scheme.known(interest.predicate)
        came = () if is_of_any_form else subscription.recent.likenesses
        return draw_likeness(came, interest.topic.attributes, known, self._env)

    async def _compose(self, subscription: LocalSubscription, like: Likeness) -> Message:
        now, interest = self._env.now(), subscription.interest
        day, topic = self._calendar.day(now), interest.topic
        subscription.recent.forget(day)
        known = self._keys.scheme.known(interest.predicate)
        came = subscription.recent.values(day)
        values = draw_values(like.names, came, topic.attributes, known, self._env)
        report = write_report(self._heard(subscription, day, now), like.size - len(packed_values(values)))
        # One tag brings it, as it does a publication; all of them may be more than a message can have.
        tags = self._env.sample(sorted(interest.predicate.tags), 1)
        tokens = await self._keys.published(topic, day, values, tags)
        body_key = await self._keys.of_bodies(topic, day)
        content = Content(report, values, probe=True)
        return compose(body_key, day, tokens, content, self._env.randomness, size=like.size)

    def _heard(self, subscription: LocalSubscription, day: int, now: float) -> list[ReportedMessage]:
        if not self._carrier.probing.reports:
            return []
        # Ends of its own for each report: by fixed ones a name that appears or is gone tells its moment.
        oldest = now - REPORTED_WITHIN + self._env.uniform(0.0, SETTLED)
        newest = now - SETTLED - self._env.uniform(0.0, SETTLED)
        return self._env.sample(subscription.recent.heard(day, oldest, newest), MAX_HEARD)
