"""Links of one child of which a newer one has begun: they act on nothing any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from small_network import until
from small_tree import small_tree

from hushcast_brokers.broker import children, tables
from hushcast_protocol.brokers.frames import ParentHello, Ping, Pong, Unsubscribe
from hushcast_runtime.time_slices import in_steps

EDGE = (("edge", "edge", "root"),)


async def test_a_link_that_is_greeted_longer_does_not_end_a_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on, greeted = trio.Event(), list[Any]()

    async def slow_at_first(work: Any) -> Any:
        greeted.append(work)
        if len(greeted) == 1:
            await may_go_on.wait()
        return await in_steps(work)

    async with small_tree((("inner", "inner", "root"), ("edge", "edge", "inner"))) as network:
        inner, edge = network["inner"], network["edge"]
        await edge.stop()
        await until(lambda: edge.key not in inner.daemon.connected(), 60.0)
        monkeypatch.setattr(tables, "in_steps", slow_at_first)
        older = await network.connect(inner, edge.seed, network.view)
        await until(lambda: len(greeted) == 1, 60.0)
        newer = await network.connect(inner, edge.seed, network.view)
        assert isinstance(await newer.hear(), ParentHello)
        may_go_on.set()
        assert await older.hear() is None
        assert await newer.ask(Ping()) == Pong()


async def test_a_request_that_waited_for_its_turn_is_not_taken_once_its_link_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = trio.Event()

    async def waits(seconds: float) -> None:
        await turn.wait()

    async with small_tree(EDGE) as network:
        edge = network["edge"]
        client = await network.client("edge", "")
        monkeypatch.setattr(children.TokenBucket, "owe", lambda *_: 1.0)
        slow = SimpleNamespace(sleep=waits, current_time=trio.current_time, lowlevel=trio.lowlevel)
        monkeypatch.setattr(children, "trio", slow)
        await client.say(lambda serial: Unsubscribe(serial, bytes(16)))
        await trio.sleep(5.0)
        turn.set()
        edge.daemon._downstream.disconnect(client.key)  # as a newer link does first
        await trio.sleep(5.0)
        assert edge.status("clients_connected") == 0
        assert edge.status("filters") == 1
