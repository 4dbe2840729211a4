"""Brokers under `full` that are killed at random: all that has a receipt comes, once."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
import trio
from broker_daemons import Node, tree_of_daemons
from full_scene import ROWS, SIX, started
from small_network import ONE, TWO, Ear, until

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Topic

pytestmark = pytest.mark.slow


class Said:
    """What one node says on two topics, and who listens."""

    def __init__(self, author: Node) -> None:
        self._author = author
        self._ears: list[tuple[str, Ear]] = []
        self._taken: dict[str, set[bytes]] = {ONE.name: set(), TWO.name: set()}

    async def listen(self, nodes: list[Node]) -> None:
        """Have these nodes subscribe, to one topic and the other in turn."""
        for number, node in enumerate(nodes):
            topic = ONE if number % 2 else TWO
            self._ears.append((topic.name, await node.listen(topic)))

    async def publish(self, topic: Topic, payload: bytes) -> None:
        """Publish; what is refused need not come."""
        with suppress(Refusal):
            await self._author.daemon.service.publish(topic, Content(payload, {}))
            self._taken[topic.name].add(payload)

    async def has_come_once(self) -> None:
        """Wait until all that was taken has come to all who listen; fail if any of it came twice."""
        for topic, ear in self._ears:
            wanted = self._taken[topic]
            await until(lambda: wanted <= set(ear.payloads), 600.0, "all has come")  # noqa: B023
            assert len(ear.payloads) == len(set(ear.payloads)), "once each"


@pytest.mark.parametrize(
    ("seed", "profile"),
    [(1, "full/3"), pytest.param(2, "full/3", marks=pytest.mark.soak), (1, "full/3/apart")],
)
async def test_what_has_a_receipt_arrives_whoever_is_killed(seed: int, profile: str) -> None:
    rng = Random(seed)
    async with tree_of_daemons(0, ROWS, seed=seed, profile=profile) as network:
        nodes = await started(network, SIX)
        said = Said(nodes[5])
        await said.listen(nodes)
        for turn in range(12):
            victim = rng.choice(network.members)
            await victim.stop()
            for number in range(3):
                await said.publish(rng.choice((ONE, TWO)), b"%d of %d" % (number, turn))
            await trio.sleep(rng.uniform(0.0, 60.0))
            await victim.start()
            await trio.sleep(rng.uniform(0.0, 30.0))
        await network.linked()
        await said.has_come_once()
        assert network.count("messages_over_share") + network.count("messages_expired") == 0


@pytest.mark.parametrize("profile", ["full/2/apart", "full/3/apart", "full/3"])
async def test_nor_is_anything_lost_as_brokers_find_other_parents(profile: str) -> None:
    rng = Random(profile)
    rows = (*ROWS, ("inner 3", "inner", "root"))
    async with tree_of_daemons(0, rows, profile=profile) as network:
        nodes = await started(network, SIX)
        said = Said(nodes[5])
        await said.listen(nodes)
        for turn in range(8):
            away = rng.choice([network["edge 1"], network["inner 1"], network["top"], network.root])
            moved = network[rng.choice(("edge 1", "edge 2", "edge 3"))]
            await away.stop()
            moved.parent = network[rng.choice(("inner 1", "inner 2", "inner 3"))]
            if network.root.is_up:
                await network.list_all()
            for number, topic in enumerate((ONE, TWO)):
                await said.publish(topic, b"%d of %d" % (number, turn))
            await trio.sleep(rng.uniform(0.0, 60.0))
            await away.start()
            await trio.sleep(rng.uniform(0.0, 60.0))
        await network.linked()
        await said.has_come_once()
        assert network.count("messages_returned") > 0
        assert network.count("messages_orphaned") == 0
