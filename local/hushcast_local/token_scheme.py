"""Schemes of tokens: by what a message finds its subscriptions. Each carrier brings its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from hushcast_protocol.base.crypto.secrets import Randomness, TopicKey
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.predicates import Condition, Predicate
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.carriers.carrier import Tokens


class TokenScheme(Protocol):
    """How tokens are made of a topic's key."""

    def key_day(self, day: int) -> int:
        """Return the day whose key the tokens of a day are made of."""

    def published(
        self,
        key: TopicKey,
        topic: Topic,
        values: Values,
        randomness: Randomness,
        tags: Iterable[str] = (),
    ) -> tuple[bytes, ...]:
        """Return a message's tokens (16 bytes each); raise `UsageError` where they are too many."""

    def wanted(self, key: TopicKey, interest: Interest) -> Tokens:
        """Return what a subscription's messages are known by."""

    def known(self, predicate: Predicate) -> Sequence[Condition]:
        """Return the conditions that a carrier learns from `wanted`, so that probes may meet them."""
