"""Tokens under `clear`: words that brokers compare with filters, the same on every day."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hushcast_protocol.base.crypto.secrets import Randomness, TopicKey
from hushcast_protocol.brokers.clear_words import ID_DAY, filter_words, words
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.predicates import Condition, Predicate
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.carriers.carrier import Tokens


class ClearTokens:
    """What messages and subscriptions are known by under `clear`; a daemon's scheme of tokens."""

    def key_day(self, day: int) -> int:
        """Return the day that ids and labels come from, whatever day it is."""
        return ID_DAY

    def published(
        self,
        key: TopicKey,
        topic: Topic,
        values: Values,
        randomness: Randomness,
        tags: Iterable[str] = (),
    ) -> tuple[bytes, ...]:
        """Return a message's words: brokers route by attributes, and leave tags aside."""
        return words(key, topic, values)

    def wanted(self, key: TopicKey, interest: Interest) -> Tokens:
        """Return the words of a subscription's filter (`shown_by`)."""
        found = filter_words(key, Filter.of(interest))
        return Tokens(found[0], found)

    def known(self, predicate: Predicate) -> Sequence[Condition]:
        """Return all conditions: brokers are told them."""
        return predicate.conditions
