"""The scheme of tokens that carriers share: tokens of a day, one of which lets a message in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hushcast_protocol.base.crypto.secrets import Randomness, TopicKey
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.predicates import Condition, Predicate
from hushcast_protocol.content.tokens import entry_condition, entry_tokens, published_tokens, token
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.carriers.carrier import Tokens


class DailyTokens:
    """Tokens that change every day, one of which lets a message in; all but that condition stay secret."""

    def key_day(self, day: int) -> int:
        """Return the day itself."""
        return day

    def published(
        self,
        key: TopicKey,
        topic: Topic,
        values: Values,
        randomness: Randomness,
        tags: Iterable[str] = (),
    ) -> tuple[bytes, ...]:
        """Return the trunk, and what any subscription may have asked for, padded."""
        return published_tokens(key, topic, values, randomness, tags)

    def wanted(self, key: TopicKey, interest: Interest) -> Tokens:
        """Return the trunk, and the tokens of tags or of the entry condition."""
        return Tokens(token(key), entry_tokens(key, interest.predicate))

    def known(self, predicate: Predicate) -> Sequence[Condition]:
        """Return the entry condition, if there is one."""
        entry = entry_condition(predicate)
        return () if entry is None else (entry,)
