"""The words of days to come, learnt while their interest may end."""

from __future__ import annotations

import trio
from small_network import BEGIN, DAY_SECONDS, EPOCH_SECONDS, until
from small_tree import KEY, TOPIC

from hushcast_brokers.client.full.client_model import FullClientModel
from hushcast_brokers.held_tree import HeldTree
from hushcast_node.counters import BROKERS_NODE
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.brokers.clear_words import words
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.carriers.carrier import Tokens
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer

NETWORK = BrokersNetwork("n", "full/3", EPOCH_SECONDS, Seed(bytes(32)).public())


class SlowlyLearnt:
    """An interest whose words take a second."""

    name = bytes(16)
    interest = Interest(TOPIC, parse_where("", TOPIC.attributes))
    terms = None
    since = None

    def __init__(self) -> None:
        self.learning = 0

    async def tokens(self, day: int) -> Tokens:
        self.learning += 1
        await trio.sleep(1.0)
        self.learning -= 1
        return Tokens(bytes(16), words(KEY, TOPIC, {"kind": str(day)}))

    def knows(self, message_id: bytes) -> bool:
        return False

    async def take(self, messages: list[Message]) -> None: ...

    def lose(self, count: int) -> None: ...

    def miss(self, message_ids: list[bytes]) -> None: ...

    def refuse(self, reason: str) -> None: ...


async def test_what_ends_while_its_words_for_tomorrow_are_learnt_is_asked_for_no_more() -> None:
    env, store, counters = simulated_environment("renewal", BEGIN), MemoryStore(), Counters(BROKERS_NODE)
    settled: list[int] = []

    async def settle() -> None:
        settled.append(len(reading.wishes()))

    async with trio.open_nursery() as nursery:
        context = Context(env, store, counters, NoTracer(), nursery.start_soon)
        reading = FullClientModel(NETWORK, HeldTree(NETWORK, store, counters), context)
        kept, ended = SlowlyLearnt(), SlowlyLearnt()
        ended.name = bytes([1]) * 16
        for one in (kept, ended):
            await reading.learn(one, OPEN)
        before = len(reading.wishes())
        nursery.start_soon(reading.run, settle)
        await until(lambda: ended.learning, DAY_SECONDS, "the words of tomorrow are learnt")
        reading.forget(ended.name)
        await until(lambda: kept.learning == ended.learning == 0)
        await trio.sleep(1.0)
        wishes = reading.wishes().values()
        assert {wish.route for wish in wishes} == {kept.name}
        assert len(wishes) == before, "half as many interests, for twice as many days"
        assert settled
        nursery.cancel_scope.cancel()
