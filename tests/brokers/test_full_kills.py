"""Brokers under `full` that are killed at random: all that has a receipt comes, once."""

from __future__ import annotations

from random import Random

import pytest
import trio
from broker_daemons import tree_of_daemons
from small_network import ONE, TWO, until
from test_full_brokers import ROWS, SIX, started

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bodies import Content


@pytest.mark.parametrize(("seed", "profile"), [(1, "full/3"), (2, "full/3"), (1, "full/3/apart")])
async def test_what_has_a_receipt_arrives_whoever_is_killed(seed: int, profile: str) -> None:
    rng = Random(seed)
    async with tree_of_daemons(0, ROWS, seed=seed, profile=profile) as network:
        nodes = await started(network, SIX)
        ears = [await node.listen(ONE if number % 2 else TWO) for number, node in enumerate(nodes)]
        author = nodes[5]
        expected: dict[str, set[bytes]] = {ONE.name: set(), TWO.name: set()}
        for turn in range(12):
            victim = rng.choice(network.members)
            await victim.stop()
            for number in range(3):
                topic, payload = rng.choice((ONE, TWO)), b"%d of %d" % (number, turn)
                try:
                    await author.daemon.service.publish(topic, Content(payload, {}))
                    expected[topic.name].add(payload)
                except Refusal:
                    pass
            await trio.sleep(rng.uniform(0.0, 60.0))
            await victim.start()
            await trio.sleep(rng.uniform(0.0, 30.0))
        await network.linked()
        for number, ear in enumerate(ears):
            wanted = expected[ONE.name if number % 2 else TWO.name]
            await until(lambda: wanted <= set(ear.payloads), 600.0, "all has come")  # noqa: B023
            assert len(ear.payloads) == len(set(ear.payloads)), "once each"
        assert network.count("messages_over_share") + network.count("messages_expired") == 0


@pytest.mark.parametrize("profile", ["full/2/apart", "full/3/apart", "full/3"])
async def test_nor_is_anything_lost_as_brokers_find_other_parents(profile: str) -> None:
    rng = Random(profile)
    rows = (*ROWS, ("inner 3", "inner", "root"))
    async with tree_of_daemons(0, rows, profile=profile) as network:
        nodes = await started(network, SIX)
        ears = [await node.listen(ONE if number % 2 else TWO) for number, node in enumerate(nodes)]
        expected: dict[str, set[bytes]] = {ONE.name: set(), TWO.name: set()}
        for turn in range(8):
            away = rng.choice([network["edge 1"], network["inner 1"], network["top"], network.root])
            moved = network[rng.choice(("edge 1", "edge 2", "edge 3"))]
            await away.stop()
            moved.parent = network[rng.choice(("inner 1", "inner 2", "inner 3"))]
            if network.root.is_up:
                await network.list_all()
            for number, topic in enumerate((ONE, TWO)):
                try:
                    payload = b"%d of %d" % (number, turn)
                    await nodes[5].daemon.service.publish(topic, Content(payload, {}))
                    expected[topic.name].add(payload)
                except Refusal:
                    pass
            await trio.sleep(rng.uniform(0.0, 60.0))
            await away.start()
            await trio.sleep(rng.uniform(0.0, 60.0))
        await network.linked()
        for number, ear in enumerate(ears):
            wanted = expected[ONE.name if number % 2 else TWO.name]
            await until(lambda: wanted <= set(ear.payloads), 600.0, "all has come")  # noqa: B023
            assert len(ear.payloads) == len(set(ear.payloads)), "once each"
        assert network.count("messages_returned") > 0
        assert network.count("messages_orphaned") == 0
