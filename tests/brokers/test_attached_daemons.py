"""Daemons over a tree of brokers: publish and subscribe, and their edge brokers, as they come and go."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from attached_scene import ROWS, edge_of, edge_of_is_other, held_at
from broker_daemons import Node, sent, tree_of_daemons
from small_network import ONE, TWO, until

from hushcast_brokers.client.attachments import ATTACH_WITHIN, EDGE_PATIENCE
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.topics import make_topic

PLACES = make_topic("places", ["kind", "lat:-90..90:0.00001"])
ANYBODY = {"k": 1, "condition": "source", "otherwise": "wait"}
ONE_EDGE = (("edge", "edge", "root"),)


def tasks(name: str) -> int:
    """How many tasks there are of this name."""
    found, waiting = 0, [trio.lowlevel.current_root_task()]
    while waiting:
        task = waiting.pop()
        assert task is not None
        found += task.name.endswith(name)
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found


async def test_conditions_of_any_width_keep_out_what_does_not_meet_them() -> None:
    async with tree_of_daemons(rows=ONE_EDGE) as network:
        reader, author = network.nodes
        # The overlay would be told of a wider range.
        ear = await reader.listen(PLACES, "lat in [-89.99999, 89.99999], kind = fire")
        await sent(author, b"elsewhere", PLACES, kind="flood", lat=9_000_000)
        await sent(author, b"here", PLACES, kind="fire", lat=9_000_000)
        await ear.hears(1)
        await trio.sleep(60)
        assert ear.payloads == [b"here"]
        assert reader.count("messages_excess") == 0
        assert network.count("messages_unmatched") == 1


async def test_probes_meet_all_conditions_and_come_back() -> None:
    async with tree_of_daemons(1, ONE_EDGE, probes_an_epoch=24.0) as network:
        node = network.nodes[0]
        await node.listen(PLACES, "lat in [60, 60.1], kind = fire")
        await node.listen(TWO, terms=ANYBODY)
        await trio.sleep(120)
        [first, second] = [route.coverage.describe() for route in node.routes]
        assert first["probes"] > 20
        assert first["share"] == 1.0
        assert second["probes"] == 0, "they would show what is to be hidden"


async def test_a_restart_finds_all_as_it_was_and_asks_for_nothing() -> None:
    async with tree_of_daemons(rows=ROWS) as network:
        reader, author = network.nodes
        await reader.listen(ONE)
        edge, before = edge_of(network, reader), reader.daemon.brokers.edge()
        asked = network.count("subscriptions")
        await reader.stop()
        await sent(author, b"meanwhile")
        await reader.start()
        ear = await reader.listen(ONE)
        await ear.hears(1)
        assert reader.daemon.brokers.edge() == before
        assert (network.count("subscriptions"), edge.count("clients_joined")) == (asked, 1)


async def test_an_edge_broker_that_lost_its_disk_is_told_again() -> None:
    async with tree_of_daemons(rows=ONE_EDGE) as network:
        reader, author = network.nodes
        ear = await reader.listen(ONE)
        edge = network["edge"]
        await edge.stop()
        for kind in ("client", "subscription"):
            for key, _ in await edge.store.scan(kind):
                edge.store._records[kind].pop(key)
        await edge.start()
        await until(lambda: held_at(edge) == 1)
        await trio.sleep(10)
        await sent(author, b"x")
        await ear.hears(1)


async def test_who_leaves_the_tree_is_replaced_at_once() -> None:
    async with tree_of_daemons(rows=ROWS) as network:
        reader, author = network.nodes
        ear = await reader.listen(ONE)
        edge = edge_of(network, reader)
        client = reader.daemon.brokers.edge()["client"]  # type: ignore[index]
        network.members.remove(edge)
        await network.list_all()
        await until(lambda: edge_of_is_other(network, reader, edge))
        await until(lambda: reader.daemon.brokers.edge()["routed"] == 1)  # type: ignore[index]
        assert reader.daemon.brokers.edge()["client"] != client  # type: ignore[index]
        await sent(author, b"x")
        await ear.hears(1)
        assert len(await reader.store.scan("attachment")) == 1
        assert tasks("Upstream._follow") == 4, "of three brokers, and one of the reader"
        await edge.stop()


@pytest.mark.slow
async def test_who_is_away_for_long_is_replaced_and_keeps_what_waits() -> None:
    async with tree_of_daemons(rows=ROWS) as network:
        reader, author = network.nodes
        ear = await reader.listen(ONE)
        edge = edge_of(network, reader)
        reader.gate.shut()
        await sent(author, b"waits")
        await edge.stop()
        reader.gate.open()
        await trio.sleep(EDGE_PATIENCE / 2)
        assert not edge_of_is_other(network, reader, edge)
        await until(lambda: edge_of_is_other(network, reader, edge), EDGE_PATIENCE)
        await until(lambda: reader.daemon.brokers.edge()["routed"] == 1)  # type: ignore[index]
        await sent(author, b"goes another way")
        await ear.hears(1)
        await edge.start()
        await ear.hears(2)
        assert sorted(ear.payloads) == [b"goes another way", b"waits"]
        calendar = network.net.calendar
        await trio.sleep(calendar.day_seconds + calendar.epoch_seconds)
        await until(lambda: not held_at(edge), 600.0, "the one left has forgotten")
        assert len(await reader.store.scan("attachment")) == 1


@pytest.mark.slow
async def test_what_waits_above_an_edge_broker_that_was_left_comes_while_the_day_lasts() -> None:
    rows = (
        ("inner 1", "inner", "root"),
        ("edge 1", "edge", "inner 1"),
        ("inner 2", "inner", "root"),
        ("edge 2", "edge", "inner 2"),
    )
    async with tree_of_daemons(rows=rows) as network:
        reader, author = network.nodes
        ear = await reader.listen(ONE)
        edge = edge_of(network, reader)
        inner = network["inner 1" if edge is network["edge 1"] else "inner 2"]
        calendar, now = network.net.calendar, network.env.now()
        await trio.sleep(calendar.day_start(calendar.day(now) + 1) - now)  # all of it within one day
        await inner.stop()
        await edge.stop()
        await sent(author, b"waits at the root")
        await until(lambda: edge_of_is_other(network, reader, edge), 2 * EDGE_PATIENCE)
        await until(lambda: reader.daemon.brokers.edge()["routed"] == 1)  # type: ignore[index]
        await edge.start()
        await trio.sleep(120)  # it has connected by then, and is silent
        await inner.start()
        await ear.hears(1)
        await trio.sleep(120)


async def test_who_is_cut_off_itself_stays_with_its_edge_broker() -> None:
    async with tree_of_daemons(rows=ROWS) as network:
        reader, author = network.nodes
        ear = await reader.listen(ONE)
        edge = edge_of(network, reader)
        for member in network.members:
            await member.stop()
        await trio.sleep(3 * EDGE_PATIENCE)
        for member in network.members:
            await member.start()
        await network.linked()
        await until(lambda: reader.daemon.brokers.edge()["reached"])  # type: ignore[index]
        assert not edge_of_is_other(network, reader, edge)
        await sent(author, b"x")
        await ear.hears(1)


async def test_one_that_is_pinned_is_never_replaced() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        author, reader = network.nodes[0], network.node("reader")
        reader.edge = network["edge 2"].key
        await reader.start()
        ear = await reader.listen(ONE)
        await network["edge 2"].stop()
        await trio.sleep(2 * EDGE_PATIENCE)
        assert not edge_of_is_other(network, reader, network["edge 2"])
        await sent(author, b"x")
        await network["edge 2"].start()
        await ear.hears(1)


async def test_one_that_is_pinned_and_not_in_the_tree_is_named() -> None:
    async with tree_of_daemons(0, ONE_EDGE) as network:
        node = network.node("node")
        node.edge = bytes(32)
        await node.start()
        with pytest.raises(Refusal, match=r"`\[brokers\] edge` is not in the tree"):
            await node.listen(ONE)
        late = network.add("late", "edge", network.root)
        await node.stop()
        node.edge = late.key
        await node.start()
        with pytest.raises(Refusal):
            await node.listen(ONE)
        await late.start()
        await network.list_all()
        await until(node.daemon.brokers.routes.attachments.choice, what="it was asked for a newer tree")
        await node.listen(ONE)


async def test_once_one_is_pinned_no_other_is_used_though_it_is_not_there_yet() -> None:
    async with tree_of_daemons(1, ONE_EDGE) as network:
        node, edge = network.nodes[0], network["edge"]
        (await node.listen(ONE)).close()
        await node.stop()
        late = network.add("late", "edge", network.root)
        node.edge = late.key
        await node.start()
        await trio.sleep(120)
        assert not edge.status("clients_connected")
        await late.start()
        await network.list_all()
        await until(lambda: held_at(late) == 1)
        await until(lambda: not held_at(edge), 600.0, "the one before was left")
        ear = await node.listen(ONE)
        await sent(node, b"x")
        await ear.hears(1)


async def test_one_that_does_not_serve_strangers_is_passed_over() -> None:
    async with tree_of_daemons(0, ROWS) as network:
        for seed in range(4):  # whichever is drawn first
            node = network.node(f"node-{seed}")
            if not seed:
                closed = network["edge 1"]
                await closed.stop()
                closed.clients = frozenset()
                await closed.start()
            await node.start()
            await node.listen(ONE)
            assert edge_of(network, node) is network["edge 2"]
        assert network["edge 1"].count("refused_unknown") > 0


async def test_where_none_serves_strangers_it_is_said_and_one_may_be_listed() -> None:
    async with tree_of_daemons(0, ONE_EDGE) as network:
        edge, node = network["edge"], network.node("node")
        await edge.stop()
        edge.clients = frozenset()
        await edge.start()
        node.edge = edge.key
        await node.start()
        with pytest.raises(Refusal, match="serves only whom it lists"):
            await node.listen(ONE)
        client = node.daemon.brokers.edge()["client"]  # type: ignore[index]
        await edge.stop()
        edge.clients = frozenset([bytes.fromhex(client)])
        await edge.start()
        await node.listen(ONE)
        assert node.daemon.brokers.edge()["client"] == client  # type: ignore[index]


async def test_who_subscribes_to_nothing_is_nobody_and_comes_back_as_somebody_else() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        node = network.nodes[0]
        (await node.listen(ONE)).close()
        edge, before = edge_of(network, node), node.daemon.brokers.edge()
        assert edge.status("clients") == 1
        await node.daemon.service.unsubscribe(ONE)
        await until(lambda: not edge.status("clients") and not edge.status("clients_connected"))
        assert before is not None
        await node.listen(ONE)
        after = node.daemon.brokers.edge()
        assert after is not None
        assert (after["broker"], len(await node.store.scan("attachment"))) == (before["broker"], 1)
        assert after["client"] != before["client"]


async def test_a_restart_shares_no_moment_with_what_is_published() -> None:
    """The outbox goes on within ten seconds, and the link to the edge broker is opened at its own moment."""
    async with tree_of_daemons(1, ONE_EDGE) as network:
        node = network.nodes[0]
        await node.listen(ONE)
        moments = []
        for _ in range(8):
            await node.stop()
            await until(lambda: not network["edge"].status("clients_connected"))
            begun = network.now
            await node.start()
            await until(lambda: network["edge"].status("clients_connected"))
            moments.append(network.now - begun)
        assert max(moments) - min(moments) > ATTACH_WITHIN / 4
        assert max(moments) < ATTACH_WITHIN + 5


async def test_under_load_stamps_are_paid() -> None:
    async with tree_of_daemons(1, ONE_EDGE) as network:
        node = network.nodes[0]
        for member in (network.root, network["edge"]):
            admission = member.daemon._admission
            admission.difficulty = admission._before = 8
        ear = await node.listen(ONE)
        for number in range(3):
            await sent(node, b"%d" % number)
        await ear.hears(3)
        assert network.root.count("refused_stamp") == 1, "only the first came without"
        assert network["edge"].count("refused_stamp") == 0, "an edge broker says first what it asks for"


async def test_a_subscription_with_terms_is_ready_once_it_is_hidden_and_stays_so_over_a_restart() -> None:
    terms = {"k": 2, "condition": "source", "otherwise": "wait"}
    async with tree_of_daemons(3, ONE_EDGE) as network:
        one, other, author = network.nodes
        heard: list[Any] = []

        async def listen(node: Node) -> None:
            heard.append(await node.listen(PLACES, "kind = fire", terms))

        network.nursery.start_soon(listen, one)
        await trio.sleep(120)
        [described] = one.daemon.service.subscriptions()
        assert (described["k"], described["outside"], described["ready"]) == (2, False, False)
        await sent(author, b"too early", PLACES, kind="fire")
        network.nursery.start_soon(listen, other)
        await until(lambda: len(heard) == 2)
        [described] = one.daemon.service.subscriptions()
        assert described["outside"] is True
        await sent(author, b"now", PLACES, kind="fire")
        await heard[0].hears(1)
        await one.restart()
        ear = await one.listen(PLACES, "kind = fire")
        assert one.daemon.service.subscriptions()[0]["outside"] is True
        await sent(author, b"again", PLACES, kind="fire")
        await ear.hears(1)
        assert ear.payloads == [b"again"], "the other was shown before"
