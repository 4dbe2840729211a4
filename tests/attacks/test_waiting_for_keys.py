"""Many applications ask for one new topic at a time, to have its key derived as often, 32 MiB each."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from hushcast_local.subscriber import MAX_SUBSCRIPTIONS
from hushcast_local.topic_keys import TopicKeys
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.content.topics import Topic, parse_topic
from hushcast_runtime.environment import Environment

NEWS, SPORT = parse_topic("news"), parse_topic("sport")
COSTS = 1.0  # virtual seconds


class Counted:
    """Derives slowly, and counts how many keys, and how many at once."""

    def __init__(self) -> None:
        self.begun: list[Topic] = []
        self.now = self.most = 0

    async def compute(self, function: Any, topic: Topic, *_: Any) -> Any:
        self.begun.append(topic)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await trio.sleep(COSTS)
        finally:
            self.now -= 1
        return TopicKey(topic.schema.ljust(32, b"\x00"))

    def keys(self) -> TopicKeys:
        return TopicKeys(bytes(32), Environment(trio.current_time, bytes, self.compute))


async def test_a_hundred_that_wait_for_one_key_derive_it_once() -> None:
    counted = Counted()
    keys = counted.keys()
    got: list[TopicKey] = []

    async def ask(topic: Topic) -> None:
        got.append(await keys.get(topic, 1))

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(ask, SPORT if number % 2 else NEWS)
    assert len(got) == 100
    assert sorted(topic.name for topic in counted.begun) == ["news", "sport"]
    assert counted.most == 1


async def test_who_waits_for_one_that_is_cancelled_is_served() -> None:
    counted = Counted()
    keys = counted.keys()
    async with trio.open_nursery() as nursery:
        first = trio.CancelScope()

        async def ask_and_leave() -> None:
            with first:
                await keys.get(NEWS, 1)

        nursery.start_soon(ask_and_leave)
        await trio.sleep(COSTS / 2)
        for _ in range(3):
            nursery.start_soon(keys.get, NEWS, 1)
        await trio.testing.wait_all_tasks_blocked()
        first.cancel()
    assert counted.begun == [NEWS, NEWS]
    assert (await keys.get(NEWS, 1)).reveal().startswith(b"news")


async def test_a_writer_on_all_topics_of_a_daemon_in_turn_has_no_key_derived_twice() -> None:
    """Messages of two days arrive around midnight, and the next day is installed by then."""
    counted = Counted()
    keys = counted.keys()
    topics = [parse_topic(f"topic {number}") for number in range(MAX_SUBSCRIPTIONS)]
    for _ in range(2):
        for day in range(3):
            for topic in topics:
                await keys.get(topic, day)
    assert len(counted.begun) == 3 * MAX_SUBSCRIPTIONS
