"""Retained messages travel again, each once in a period, while they are this gateway's."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from hushcast_gateway.network import retained_refresh
from hushcast_gateway.network.retained_refresh import RetainedRefresh
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore

HOUR = 3_600.0


class State:
    """A broker that retains."""

    def __init__(self, **retained: bytes) -> None:
        self.broker = self
        self.retained = {
            topic: MqttMessage(topic, payload, retain=True) for topic, payload in retained.items()
        }

    def retained_at(self, topic: str) -> MqttMessage | None:
        return self.retained.get(topic)


async def sent(
    one: RetainedRefresh, out: list[MqttMessage], state: Any, store: MemoryStore, hours: float
) -> list[str]:
    out.clear()
    with trio.move_on_after(hours * HOUR):
        await one.run(state, store)
    return sorted(message.topic for message in out)


async def test_each_topic_once_in_a_period(autojump_clock: MockClock) -> None:
    out: list[MqttMessage] = []
    one, store = RetainedRefresh(2, out.append, simulated_environment("one", 0.0)), MemoryStore()
    state = State(a=b"1", b=b"2", theirs=b"3")
    await sent(one, out, state, store, 0.01)
    for topic in ("a", "b", "gone"):
        one.note(topic, True)
    assert await sent(one, out, state, store, 1.99) == ["a", "b"]
    again = RetainedRefresh(2, out.append, simulated_environment("two", 0.0))
    assert await sent(again, out, state, store, 3.99) == ["a", "a", "b", "b"], "the disk remembers"
    again.note("a", False)
    assert await sent(again, out, state, store, 1.99) == ["b"], "another gateway published since"


async def test_never_unless_it_is_configured(autojump_clock: MockClock) -> None:
    out: list[MqttMessage] = []
    one, store = RetainedRefresh(0, out.append, simulated_environment("one", 0.0)), MemoryStore()
    one.note("a", True)
    assert await sent(one, out, State(a=b"1"), store, 100) == []


async def test_who_sets_it_later_has_it_of_what_was_retained_before(autojump_clock: MockClock) -> None:
    out: list[MqttMessage] = []
    store = MemoryStore()
    before = RetainedRefresh(0, out.append, simulated_environment("one", 0.0))
    await sent(before, out, State(a=b"1"), store, 1)
    before.note("a", True)
    later = RetainedRefresh(1, out.append, simulated_environment("one", 0.0))
    assert await sent(later, out, State(a=b"1"), store, 0.99) == ["a"]


async def test_so_many_topics_at_most(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retained_refresh, "MAX_REFRESHED", 2)
    out: list[MqttMessage] = []
    one = RetainedRefresh(1, out.append, simulated_environment("one", 0.0))
    for topic in ("a", "b", "c"):
        one.note(topic, True)
    assert await sent(one, out, State(a=b"", b=b"", c=b""), MemoryStore(), 0.99) == ["a", "b"]
