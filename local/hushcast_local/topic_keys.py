"""Topic keys, derived once for each topic and day and cached in memory only; and the tokens made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from hushcast_local.token_scheme import TokenScheme
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.carriers.carrier import Tokens
from hushcast_runtime.carriers.daily_tokens import DailyTokens
from hushcast_runtime.environment import Environment
from hushcast_runtime.few_at_once import FewAtOnce

MAX_KEYS = 1024  # three days of each subscription, and of publications; a miss costs tens of ms

Derive = Callable[[Topic, bytes, int], TopicKey]


class TopicKeys:
    """The keys that this daemon used lately."""

    def __init__(
        self,
        network: bytes,
        env: Environment,
        derive: Derive = topic_key,
        body_key: TopicKey | None = None,
        scheme: TokenScheme | None = None,
    ) -> None:
        """`body_key` is the one key of all bodies, where these are not sealed under their topics'.

        `scheme` is that of `DailyTokens` unless given.
        """
        self.scheme: TokenScheme = scheme or DailyTokens()
        self.network = network
        self._env = env
        self._derive = derive
        self._body_key = body_key
        self._keys: dict[tuple[Topic, int], TopicKey] = {}
        # One derivation at a time, because each takes 32 MiB, and one for all tasks that wait for the same
        # key.
        self._deriving = FewAtOnce()

    async def of_bodies(self, topic: Topic, day: int) -> TopicKey:
        """Return the key that bodies of a topic are sealed under on a day."""
        return self._body_key if self._body_key is not None else await self.get(topic, day)

    async def published(
        self, topic: Topic, day: int, values: Values, tags: Iterable[str] = ()
    ) -> tuple[bytes, ...]:
        """Return the tokens of a message of a day; raise `UsageError` where they are too many."""
        key = await self.get(topic, self.scheme.key_day(day))
        return self.scheme.published(key, topic, values, self._env.randomness, tags)

    async def wanted(self, interest: Interest, day: int) -> Tokens:
        """Return what a subscription's messages of a day are known by."""
        key = await self.get(interest.topic, self.scheme.key_day(day))
        return self.scheme.wanted(key, interest)

    async def get(self, topic: Topic, day: int) -> TopicKey:
        """Return the key of a topic for a day, which its tokens come from."""
        place = (topic, day)
        if (known := self._keys.get(place)) is not None:
            return known
        async with self._deriving:  # if the one that derives is cancelled, the next one does
            if (known := self._keys.get(place)) is not None:
                return known
            key = await self._env.compute(self._derive, topic, self.network, day)
            while len(self._keys) >= MAX_KEYS:
                del self._keys[next(iter(self._keys))]
            self._keys[place] = key
            # A thread is not cancelled: whoever was meanwhile, as by the daemon's end, must go no further.
            await trio.lowlevel.checkpoint_if_cancelled()
            return key
