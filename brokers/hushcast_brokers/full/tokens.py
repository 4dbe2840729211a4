"""Tokens under `full`: names of what the day's tokens are made into, which the root alone looks up."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.base.secrets import Randomness, TopicKey
from hushcast_protocol.brokers.full.actions import Action
from hushcast_protocol.brokers.full.words import published_names
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.predicates import Condition, Predicate
from hushcast_protocol.content.tokens import (
    check_predicate,
    entry_condition,
    entry_tokens,
    published_tokens,
    token,
)
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.carrier import Tokens


class FullTokens:
    """What messages and subscriptions are known by under `full`; a daemon's scheme of tokens."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def key_day(self, day: int) -> int:
        """Return the day itself."""
        return day

    def published(
        self, key: TopicKey, topic: Topic, values: Values, randomness: Randomness
    ) -> tuple[bytes, ...]:
        """Return the names of what any subscription may have asked for, padded."""
        return published_names(self._action, published_tokens(key, topic, values, randomness))

    def wanted(self, key: TopicKey, interest: Interest) -> Tokens:
        """Return the trunk, and the tokens of the entry condition: the words that are asked for."""
        return Tokens(token(key), entry_tokens(key, interest.predicate))

    def known(self, predicate: Predicate) -> Sequence[Condition]:
        """Return the entry condition, if there is one."""
        entry = entry_condition(predicate)
        return () if entry is None else (entry,)

    def check(self, predicate: Predicate) -> None:
        """Raise `UsageError` if no condition's range can be covered."""
        check_predicate(predicate)
