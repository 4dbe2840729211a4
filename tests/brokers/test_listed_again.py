"""Brokers that are listed again while what their parent held for them is being matched again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from hanging_disk import Disk
from small_network import until
from small_tree import Client, Member, SmallTree, hears, nothing_waits, small_tree

from hushcast_brokers.broker import tables
from hushcast_brokers.broker.former_children import LOOK_EVERY, SETTLED_AFTER

ROWS = (("a", "inner", "root"), ("one", "edge", "a"), ("two", "edge", "a"))


async def leave(network: SmallTree, *members: Member) -> None:
    """Have the root list these no more, until their parent is about to match again what it held for them."""
    network.members = [one for one in network.members if one not in members]
    await network.list_all()
    await until(lambda: network["a"].daemon.tree.version == network.root.daemon.tree.version)
    await network.published(lat=1)
    await trio.sleep(SETTLED_AFTER - LOOK_EVERY)


async def come_back(network: SmallTree, *members: Member) -> None:
    network.members.extend(members)
    await network.list_all()
    for member in members:
        await until(lambda: member.daemon.parent_state == "open", 120.0, "it is back")  # noqa: B023


async def all_hear(network: SmallTree, *clients: Client) -> None:
    for client in clients:
        await client.attach()
    message = await network.published(lat=2)
    for client in clients:
        await until(hears(client, message), 60.0, "what is published now is heard")


async def test_two_that_are_back_while_the_messages_of_one_are_moved_are_both_routed_to() -> None:
    async with small_tree(ROWS) as network:
        clients = [await network.client(edge, "") for edge in network.edges]
        await network["a"].stop()
        disk = network["a"].store = Disk(network["a"].store)
        await network["a"].start()
        await network.linked()
        gone = network.edges
        await leave(network, *gone)
        disk.hang()
        await trio.sleep(2 * LOOK_EVERY)
        await come_back(network, *gone)
        disk.turn()
        await trio.sleep(LOOK_EVERY)
        await all_hear(network, *clients)


async def test_one_that_is_back_while_its_table_is_dropped_is_routed_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on = trio.Event()
    async with small_tree(ROWS) as network:
        client = await network.client("one", *(f"lat in [{n}, {n}]" for n in range(8)))
        monkeypatch.setattr(tables, "_AT_ONCE", 2)
        turns = SimpleNamespace(lowlevel=SimpleNamespace(checkpoint=may_go_on.wait))
        monkeypatch.setattr(tables, "trio", turns)
        one = network["one"]
        await leave(network, one)
        await until(lambda: network["a"].status("filters") == 6, 2 * LOOK_EVERY, "it is being dropped")
        await come_back(network, one)
        may_go_on.set()
        await all_hear(network, client)


async def test_one_that_is_back_and_leaves_once_more_while_its_messages_are_moved_is_awaited_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_go_on = trio.Event()
    async with small_tree(ROWS) as network:
        a, one = network["a"], network["one"]
        for edge in network.edges:
            await network.client(edge, "")
        spool = a.daemon._spool
        move = spool.move

        async def slow(moves: Any) -> Any:
            placed = await move(moves)
            await may_go_on.wait()
            return placed

        monkeypatch.setattr(spool, "move", slow)
        await leave(network, one)
        await until(lambda: a.status("filters") == 1, 4 * LOOK_EVERY, "what it asked for is dropped")
        await come_back(network, one)
        await until(lambda: a.status("filters") == 2, 60.0, "it has asked again")
        network.members.remove(one)
        await network.list_all()
        await until(lambda: a.daemon.tree.version == network.root.daemon.tree.version)
        may_go_on.set()
        await trio.sleep(LOOK_EVERY)
        await network.published(lat=3)
        await until(lambda: a.status("filters") == 1, 3 * SETTLED_AFTER, "it is forgotten as before")
        await nothing_waits(network, 60.0)
