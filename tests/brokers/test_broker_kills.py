"""Brokers that are killed, restarted, replaced and moved: nothing is lost but what they had acknowledged."""

from __future__ import annotations

import pytest
import trio
from small_network import until
from small_tree import SIX, hears, nothing_waits, shape, small_tree

from hushcast_brokers.broker.former_children import REMATCH_AFTER, SETTLED_AFTER


async def test_each_broker_may_be_away_for_a_while() -> None:
    async with small_tree() as network:
        clients = [await network.client(edge, "") for edge in network.edges]
        clients.append(await network.client("edge 1", "lat in [0, 5]"))
        messages = []
        for member in network.members[1:]:
            await member.stop()
            messages.append(await network.published(lat=50))
            await member.start()
            await network.linked()
        for client in clients:
            if not client.is_attached:
                await client.attach()
        for client in clients[:3]:
            await until(hears(client, *messages))
        assert clients[3].heard == []
        await network.root.restart()
        await network.linked()
        last = await network.published(lat=50)
        for client in clients[:3]:
            await until(hears(client, last))
        await nothing_waits(network)


async def test_a_request_is_answered_when_somebody_above_is_back() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1")
        await network["inner 1"].stop()
        await until(lambda: network["edge 1"].daemon.parent_state != "open")
        answers: list[str] = []

        async def subscribe() -> None:
            answers.append(await client.subscribe("lat in [0, 10]"))

        network.nursery.start_soon(subscribe)
        await trio.sleep(60)
        assert answers == []
        await network["inner 1"].start()
        await until(lambda: answers == ["accepted"])
        message = await network.published(lat=5)
        await until(hears(client, message))


async def test_what_a_restart_left_is_advertised_no_more_than_needed() -> None:
    async with small_tree() as network:
        await network.client("edge 1", "lat in [0, 10]", "lat in [20, 30]")
        sent = network.count("advertisements_sent")
        for member in network.members:
            await member.restart()
        await network.linked()
        await trio.sleep(30)
        assert network.count("advertisements_sent") == sent
        assert network.root.status("filters") == 2


async def test_a_broker_that_lost_its_disk_hears_all_again() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "lat in [0, 10]", "lat in [20, 30]")
        await network["inner 1"].stop()
        network["inner 1"].store._records.clear()
        network["inner 1"].store.version = 0
        await network["inner 1"].start()
        await network.linked()
        await until(lambda: network.root.status("filters") == 2)
        message = await network.published(lat=5)
        await until(hears(client, message))


async def test_an_inner_broker_is_replaced_and_nothing_is_lost() -> None:
    async with small_tree() as network:
        one, two = await network.client("edge 1", ""), await network.client("edge 2", "lat in [0, 60]")
        old = network["inner 1"]
        await old.stop()
        before = [await network.published(lat=n) for n in range(5)]
        network.members.remove(old)
        shape(network, [("inner 3", "inner", "root")])
        for name in ("edge 1", "edge 2"):
            network[name].parent = network["inner 3"]
        await network.list_all()
        between = [await network.published(lat=n) for n in range(5)]
        await network["inner 3"].start()
        await network.linked()
        after = [await network.published(lat=n) for n in range(5)]
        for client in (one, two):
            await until(hears(client, *before, *between, *after), REMATCH_AFTER)
            assert len(client.heard) == 15, "none twice"
        await nothing_waits(network)
        assert network.root.count("messages_rematched") >= 5
        assert network.root.status("filters") == 1


async def test_a_broker_that_goes_leaves_its_children_to_a_sibling() -> None:
    async with small_tree() as network:
        one = await network.client("edge 1", "lat in [0, 10]")
        three = await network.client("edge 3", "")
        old = network["inner 1"]
        await old.stop()
        before = await network.published(lat=5)
        network.members.remove(old)
        for name in ("edge 1", "edge 2"):
            network[name].parent = network["inner 2"]
        await network.list_all()
        await network.linked()
        after = await network.published(lat=7)
        await until(hears(one, before, after), REMATCH_AFTER)
        await until(hears(three, before, after))
        await nothing_waits(network, REMATCH_AFTER)
        assert len(one.heard) == len(three.heard) == 2


async def test_two_levels_at_once_are_replaced() -> None:
    rows = (
        ("a", "inner", "root"),
        ("b", "inner", "a"),
        ("e", "edge", "b"),
        ("f", "edge", "b"),
    )
    async with small_tree(rows) as network:
        clients = [await network.client("e", "lat in [0, 50]"), await network.client("f", "lat in [40, 90]")]
        gone = [network["a"], network["b"]]
        for member in gone:
            await member.stop()
        before = await network.published(lat=45)
        for member in gone:
            network.members.remove(member)
        shape(network, [("c", "inner", "root"), ("d", "inner", "c")])
        network["e"].parent = network["f"].parent = network["d"]
        await network.list_all()
        for name in ("c", "d"):
            await network[name].start()
        between = await network.published(lat=45)
        await network.linked()
        for client in clients:
            await until(hears(client, before, between), REMATCH_AFTER + 120)
            assert len(client.heard) == 2


async def test_what_nobody_finds_another_way_for_is_given_up() -> None:
    async with small_tree() as network:
        await network.client("edge 1", "")
        await network["inner 1"].stop()
        await network.published(lat=5)
        network.members = [m for m in network.members if m.name not in ("inner 1", "edge 1", "edge 2")]
        await network.list_all()
        await trio.sleep(REMATCH_AFTER + 60)
        assert network.root.status("messages_waiting") == network.root.status("filters") == 0
        assert network.root.count("messages_orphaned") == 1


async def test_a_broker_that_the_tree_lacks_waits_until_it_is_listed() -> None:
    async with small_tree() as network:
        shape(network, [("edge 4", "edge", "inner 2")])
        member = network["edge 4"]
        await member.start()
        await trio.sleep(120)
        assert member.daemon.parent_state == "not reached"
        assert member.status("role") is None
        await network.list_all()
        await network.linked()
        client = await network.client("edge 4", "")
        message = await network.published(lat=1)
        await until(hears(client, message))


async def test_a_root_restored_from_a_backup_outdoes_the_trees_of_before() -> None:
    async with small_tree() as network:
        backup = {kind: dict(records) for kind, records in network.root.store._records.items()}
        shape(network, [("edge 4", "edge", "inner 2")])
        await network.list_all()
        await network["edge 4"].start()
        await network.linked()
        await network.root.stop()
        network.root.store._records = backup
        network.members.remove(network["edge 4"])
        shape(network, [("edge 5", "edge", "inner 1")])
        await network.root.start()
        await network["edge 5"].start()
        await network.linked()
        assert network.root.daemon.tree.version > 2
        assert len(SIX) + 2 == len(network.root.daemon.tree.brokers)


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_replacement_that_comes_late_gets_what_waited(restarts: bool) -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        old = network["inner 1"]
        await old.stop()
        before = await network.published(lat=1)
        network.members.remove(old)
        shape(network, [("inner 3", "inner", "root")])
        for name in ("edge 1", "edge 2"):
            network[name].parent = network["inner 3"]
        await network.list_all()
        if restarts:  # and has forgotten who is new
            await network.root.restart()
        await trio.sleep(2 * SETTLED_AFTER)
        await network["inner 3"].start()
        await until(hears(client, before), REMATCH_AFTER)
        await nothing_waits(network)


async def test_a_sibling_that_takes_over_and_is_away_gets_what_waited() -> None:
    async with small_tree() as network:
        client = await network.client("edge 1", "")
        old, sibling = network["inner 1"], network["inner 2"]
        await old.stop()
        await sibling.stop()
        before = await network.published(lat=1)
        network.members.remove(old)
        for name in ("edge 1", "edge 2"):
            network[name].parent = sibling
        await network.list_all()
        await trio.sleep(2 * SETTLED_AFTER)
        await sibling.start()
        await until(hears(client, before), REMATCH_AFTER)
        await nothing_waits(network)
