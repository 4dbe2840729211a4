"""A broker times what those below acknowledge, to see what they want of all that comes to them.

An edge broker shows a filter wider than what its clients want, and a daemon asks for more than its condition
lets through. What is wanted goes on disk before it is acknowledged, and what is not is thrown away: over some
hundred messages the broker above would have read the true filter, whatever `--k` says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from broker_daemons import TreeOfDaemons, tree_of_daemons
from posed_child import posing
from slow_store import SlowStore
from small_network import until
from small_tree import SmallTree, small_tree
from talk import Talk
from test_lying_brokers import PLACES, message

from benchmarks.answers.__main__ import later
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.brokers.frames import Ack, Forward, ParentHello, RequestAnswer
from hushcast_protocol.content.messages import Message
from hushcast_runtime.transports.drawn_answers import HEARD_A_SECOND

COMMIT = 0.1  # seconds that a change takes: as much as ways differ, so that fewer trials do than with 5 ms
TRIALS = 150
SECONDS = 10
ROWS = (("inner", "inner", "root"), ("edge", "edge", "inner"))
Times = Mapping[str, list[float]]


class TimingParent:
    """A parent that sends one message after the other, and times when each is acknowledged."""

    def __init__(self, kinds: Mapping[str, Any]) -> None:
        """`kinds` make messages."""
        self._kinds = kinds
        self.took: dict[str, list[float]] = {kind: [] for kind in kinds}

    @property
    def is_done(self) -> bool:
        return all(len(took) >= TRIALS for took in self.took.values())

    async def talk(self, talk: Talk) -> None:
        """Say what a parent says, and send."""
        await talk.say(ParentHello(bytes(16), 0, 1))
        with trio.move_on_after(20):
            await self._answer(talk, 0)
        number = 0
        while not self.is_done:
            for kind, make in self._kinds.items():
                number += 1
                began = trio.current_time()
                await talk.say(Forward(make()))
                await self._answer(talk, number)
                self.took[kind].append(trio.current_time() - began)
                await trio.sleep(2 * NEWEST.acknowledges_within)

    async def _answer(self, talk: Talk, number: int) -> None:
        """Answer what is asked, until so many are acknowledged."""
        while True:
            frame = await talk.hear(within=120)
            if isinstance(frame, Ack):
                assert frame.number == number
                return
            if frame is not None and hasattr(frame, "serial"):
                await talk.say(RequestAnswer(frame.serial, "accepted"))


def told(times: Times) -> bool:
    """Tell whether a parent sees which kind a message is of."""
    first, second = times.values()
    share, around = later(first, second)
    return abs(share - 0.5) > 1.5 * around


def excess(network: SmallTree) -> Mapping[str, Any]:
    return {"wanted": lambda: network.message(lat=5), "not": lambda: network.message(lat=50)}


def the_same(network: SmallTree) -> Mapping[str, Any]:
    return {"wanted": lambda: network.message(lat=5), "as well": lambda: network.message(lat=6)}


@asynccontextmanager
async def edge_with(store: SlowStore) -> AsyncIterator[SmallTree]:
    """An edge broker with such a disk, and one client, which wants some of what a parent sends."""
    async with small_tree(ROWS) as network:
        edge = network["edge"]
        await edge.stop()
        edge.store = store
        await edge.start()
        await network.linked()
        await network.client("edge", "lat in [0, 10]")
        yield network


async def timed_edge(kinds: Any) -> Times:
    """What a parent times."""
    async with edge_with(SlowStore(COMMIT)) as network:
        parent = TimingParent(kinds(network))
        async with posing(network, network["inner"], parent.talk):
            await until(lambda: parent.is_done, 1e5)
        return parent.took


@pytest.mark.slow
async def test_a_parent_does_not_see_which_messages_an_edge_broker_has_clients_for() -> None:
    assert not told(await timed_edge(excess))


@pytest.mark.slow
async def test_what_is_answered_at_once_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with an edge broker that draws nothing, and messages of one kind."""
    monkeypatch.setattr("hushcast_runtime.transports.drawn_answers.DrawnAnswers._drawn", lambda _: 0.0005)
    assert told(await timed_edge(excess))
    assert not told(await timed_edge(the_same))


@pytest.mark.slow
async def test_a_parent_does_not_see_it_by_how_many_are_taken_in_time() -> None:
    """It sends a slow disk as many a second as are taken, and counts how many are acknowledged in time."""
    counts = [await taken_in_time(lat) for lat in (5, 50)]
    assert abs(counts[0] - counts[1]) < SECONDS * HEARD_A_SECOND / 10


async def taken_in_time(lat: int) -> int:
    """Count what an edge broker acknowledges of messages of one kind while they are sent."""
    count = 0
    done = trio.Event()

    async def hear(talk: Talk) -> None:
        nonlocal count
        while True:
            frame = await talk.hear(within=1000)
            if isinstance(frame, Ack):
                count = frame.number
            elif frame is not None and hasattr(frame, "serial"):
                await talk.say(RequestAnswer(frame.serial, "accepted"))

    async def script(talk: Talk) -> None:
        if done.is_set():
            return
        await talk.say(ParentHello(bytes(16), 0, 1))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hear, talk)
            await trio.sleep(20)
            for _ in range(5 * SECONDS):
                await talk.say(*(Forward(network.message(lat=lat)) for _ in range(int(HEARD_A_SECOND / 5))))
                await trio.sleep(0.2)
            nursery.cancel_scope.cancel()
        done.set()

    async with edge_with(SlowStore(0.0, 0.1)) as network, posing(network, network["inner"], script):
        await done.wait()
    return count


@pytest.mark.slow
async def test_an_edge_broker_does_not_see_what_a_daemon_wants() -> None:
    async with tree_of_daemons(0, ROWS) as network:
        node = network.node("node")
        node.store = SlowStore(COMMIT)
        await node.start()
        ear = await node.listen(PLACES, "lat in [0, 10]")
        made(network, lat=95)  # the topic's key, which takes long, is derived in no step of the program
        parent = TimingParent(
            {
                "wanted": lambda: made(network, lat=95),  # of 181 places
                "not": lambda: made(network, lat=50),
            }
        )
        async with posing(network, network["edge"], parent.talk):
            await until(lambda: parent.is_done, 1e5)
        assert len(ear.heard) >= TRIALS
        assert not told(parent.took)


def made(network: TreeOfDaemons, **values: Any) -> Message:
    return message(network, network.env.randomness(16), topic=PLACES, **values)
