"""Topic keys, stretched once for each topic and day and kept in memory only."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.secrets import TopicKey
from hushcast_protocol.tokens import topic_key
from hushcast_protocol.topics import Topic
from hushcast_runtime.environment import Environment

MAX_KEYS = 256  # topics times days in use at once; a key more costs tens of milliseconds again

Derive = Callable[[Topic, bytes, int], TopicKey]


class TopicKeys:
    """The keys that this daemon used lately."""

    def __init__(self, network: bytes, env: Environment, derive: Derive = topic_key) -> None:
        self._network = network
        self._env = env
        self._derive = derive
        self._keys: dict[tuple[Topic, int], TopicKey] = {}

    async def get(self, topic: Topic, day: int) -> TopicKey:
        """Return the key of a topic for a day."""
        place = (topic, day)
        if place not in self._keys:
            key = await self._env.compute(self._derive, topic, self._network, day)
            while len(self._keys) >= MAX_KEYS:
                del self._keys[next(iter(self._keys))]
            self._keys[place] = key
        return self._keys[place]
