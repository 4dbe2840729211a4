"""Under layers, what waits for a broker that is no child any more goes to the root, and to who asks then."""

from __future__ import annotations

import pytest
import trio
from broker_daemons import TreeOfDaemons, sent, tree_of_daemons
from full_scene import ROWS, started
from small_network import ONE, TWO, until

APART = "full/3/apart"


async def move(network: TreeOfDaemons, edge: str, to: str) -> None:
    """Have an edge broker be below another parent, with all links open again."""
    network[edge].parent = network[to]
    await network.list_all()
    await network.linked()


async def drop(network: TreeOfDaemons, *names: str) -> None:
    """Take brokers off the tree."""
    network.members = [member for member in network.members if member.name not in names]
    await network.list_all()


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["full/2/apart", APART, "full/4/apart", "full/3"])
async def test_a_reader_that_is_away_for_hours_misses_nothing_of_the_day(profile: str) -> None:
    async with tree_of_daemons(0, ROWS, profile=profile) as network:
        reader, other, author = await started(network, ("edge 1", "edge 3", "edge 3"))
        await reader.listen(ONE)
        ear = await other.listen(ONE)
        await reader.stop()
        await network["inner 1"].stop()
        await sent(author, b"while its broker is away")
        gone = network["inner 1"]
        for edge in ("edge 1", "edge 2"):
            network[edge].parent = network["inner 2"]
        await drop(network, gone.name)
        await network.linked()
        await sent(author, b"while it is away")
        await trio.sleep(900)
        await sent(author, b"much later")
        await trio.sleep(60)
        await reader.start()
        again = await reader.listen(ONE)
        wanted = [b"much later", b"while it is away", b"while its broker is away"]
        assert sorted(await again.hears(3, within=300.0)) == wanted
        assert sorted(await ear.hears(3)) == wanted, "once each"
        assert network.count("messages_orphaned") == 0
        assert network.count("messages_returned") >= 2


@pytest.mark.parametrize("profile", [APART, "full/3"])
async def test_a_broker_that_moves_while_its_parent_stays_misses_nothing(profile: str) -> None:
    async with tree_of_daemons(0, ROWS, profile=profile) as network:
        reader, other, author = await started(network, ("edge 1", "edge 3", "edge 3"))
        ears = [await reader.listen(ONE), await other.listen(ONE)]
        await network["edge 1"].stop()
        await sent(author, b"waits at inner 1")
        network["edge 1"].parent = network["inner 2"]
        await network.list_all()
        await sent(author, b"came to inner 1 since")
        await network["edge 1"].start()
        await network.linked()
        await sent(author, b"after")
        for ear in ears:
            assert len(await ear.hears(3, within=300.0)) == 3
        assert network.count("messages_orphaned") == 0


async def test_those_whose_edge_broker_leaves_find_at_another_what_waited() -> None:
    rows = (("edge 1", "edge", "root"), ("edge 2", "edge", "root"))
    async with tree_of_daemons(0, rows, profile="full/2/apart") as network:
        reader = network.node("reader")
        await reader.start()
        (author,) = await started(network, ("edge 2",))
        ear = await reader.listen(ONE)
        mine = next(edge for edge in network.edges if edge.status("clients") == 1)
        await mine.stop()
        await sent(author, b"before it leaves")
        await drop(network, mine.name)
        assert await ear.hears(1, within=300.0) == [b"before it leaves"]
        await sent(author, b"after")
        assert len(await ear.hears(2, within=300.0)) == 2


async def test_a_broker_that_is_listed_again_gets_what_was_handed_up_meanwhile() -> None:
    async with tree_of_daemons(0, ROWS, profile=APART) as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        ear = await reader.listen(ONE)
        edge = network["edge 1"]
        await edge.stop()
        await drop(network, edge.name)
        await sent(author, b"while it is not listed")
        await until(lambda: network.root.count("messages_returned") == 1, 120, "the root has it")
        network.members.append(edge)
        await network.list_all()
        await edge.start()
        await network.linked()
        assert await ear.hears(1, within=300.0) == [b"while it is not listed"]


@pytest.mark.slow
async def test_restarts_on_the_way_lose_nothing_of_it() -> None:
    async with tree_of_daemons(0, ROWS, profile=APART) as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        await reader.listen(ONE)
        await reader.stop()
        await network["edge 1"].stop()
        await network["inner 1"].stop()
        for number in range(20):
            await sent(author, b"%d" % number)
        await network.root.stop()
        network["edge 1"].parent = network["edge 2"].parent = network["inner 2"]
        network.members.remove(network["inner 1"])
        await network.root.start()
        await until(lambda: network["top"].daemon.tree.version == network.root.daemon.tree.version, 120)
        await network.root.stop()  # `top` has nobody to hand it to
        await trio.sleep(30)
        await network["top"].stop()
        await network["top"].start()
        await network.root.start()
        await until(lambda: network.root.count("messages_returned") == 20, 300, "the root has all")
        await network.root.restart()
        await network["edge 1"].start()
        await network.linked()
        await reader.start()
        ear = await reader.listen(ONE)
        assert len(await ear.hears(20, within=600.0)) == 20


@pytest.mark.slow
async def test_what_was_handed_up_is_gone_once_its_day_has_lapsed() -> None:
    async with tree_of_daemons(0, ROWS, profile=APART) as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        await reader.listen(ONE)
        await reader.stop()
        await network["edge 1"].stop()
        await drop(network, "edge 1")
        await sent(author, b"nobody comes for it")
        await until(lambda: network.root.count("messages_returned") == 1, 120)
        kinds = ("handed-up", "published-words")
        assert all(network.root.store._records[kind] for kind in kinds)
        await trio.sleep(2 * network.calendar.day_seconds)
        for member in network.members:
            assert not any(member.store._records.get(kind) for kind in kinds)
            assert member.status("messages_waiting") == 0


async def test_who_never_asked_gets_nothing_of_what_was_handed_up() -> None:
    async with tree_of_daemons(0, ROWS, profile=APART) as network:
        reader, other, author = await started(network, ("edge 1", "edge 3", "edge 3"))
        await reader.listen(ONE)
        ear = await other.listen(TWO)
        await network["edge 1"].stop()
        await drop(network, "edge 1")
        await sent(author, b"for somebody else")
        await until(lambda: network.root.count("messages_returned") == 1, 120)
        another = await other.listen(TWO)
        await trio.sleep(120)
        assert not ear.heard
        assert not another.heard
        assert network.count_at_nodes("deliveries_refused") == 0


async def test_one_that_is_listed_again_while_its_parent_is_away_gets_what_was_handed_up_before() -> None:
    async with tree_of_daemons(0, ROWS, profile=APART) as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        ear = await reader.listen(ONE)
        edge, parent = network["edge 1"], network["inner 1"]
        await edge.stop()
        await drop(network, edge.name)
        await sent(author, b"while it is not listed")
        await until(lambda: network.root.count("messages_returned") == 1, 120, "the root has it")
        await parent.stop()
        network.members.append(edge)
        await network.list_all()
        await parent.start()
        await edge.start()
        await network.linked()
        assert await ear.hears(1, within=300.0) == [b"while it is not listed"]
