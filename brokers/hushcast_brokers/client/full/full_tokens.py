"""Tokens under `full`: names of what the day's tokens are made into, which the root alone looks up."""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_protocol.base.crypto.secrets import Randomness, TopicKey
from hushcast_protocol.brokers.full.group_action import GroupAction
from hushcast_protocol.brokers.full.published_names import published_names
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.topics import Topic
from hushcast_runtime.carriers.daily_tokens import DailyTokens


class FullTokens(DailyTokens):
    """What messages and subscriptions are known by under `full`; a daemon's scheme of tokens."""

    def __init__(self, action: GroupAction) -> None:
        self._action = action

    def published(
        self,
        key: TopicKey,
        topic: Topic,
        values: Values,
        randomness: Randomness,
        tags: Iterable[str] = (),
    ) -> tuple[bytes, ...]:
        """Return the names of what any subscription may have asked for, padded."""
        return published_names(self._action, super().published(key, topic, values, randomness, tags))
