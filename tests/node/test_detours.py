"""What becomes of messages whose next hop is away, or knows nothing of them; and which leases are pruned."""

from __future__ import annotations

import pytest
import trio
from small_network import ONE, TWO, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import detours
from hushcast_overlay.relay.detour_pace import AROUND_WITHIN, MAX_AT_ONCE, REST
from hushcast_protocol.base.link.hop import DETOUR_AFTER
from hushcast_protocol.base.link.hop_link import IDLE
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.hops import is_box, key_of, relay_hop, waits
from hushcast_protocol.overlay.leases import LeaseBook
from hushcast_protocol.overlay.tree import Tree

LONG = 4 * 3600  # seconds of an epoch, so long that no tree is mended during a test


def tree_of(subscriber: Node) -> Tree:
    (planned,) = subscriber.route().planned.values()
    return planned.installation.tree


def node_of(net: SmallNetwork, key: bytes | None) -> Node:
    return next(node for node in net.relays if node.id == key)


def book_of(relay: Node) -> LeaseBook:
    assert relay.daemon.overlay.relay is not None
    return relay.daemon.overlay.relay.leases.book


def a_top_with_children(net: SmallNetwork, subscriber: Node) -> tuple[Node, Node]:
    """Return a top relay of a subscriber's tree and one relay under it."""
    tree = tree_of(subscriber)
    top = next(relay for relay in tree.children[None] if tree.children.get(relay))
    return node_of(net, top), node_of(net, tree.children[top][0])


@pytest.mark.slow
async def test_messages_go_around_a_next_hop_that_died() -> None:
    async with small_network(relays=12, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        top, below = a_top_with_children(net, net.clients[0])
        await top.stop()
        started = trio.current_time()
        sent = [b"%d" % number for number in range(6)]
        for payload in sent:
            await net.drop_at(below, ONE, Content(payload))
        heard = await ear.hears(6, within=4 * DETOUR_AFTER)
        assert sorted(heard) == sent
        assert trio.current_time() - started >= DETOUR_AFTER / 2
        assert below.count("messages_detoured") >= 6
        assert below.count("next_hops_away") == 1
        sent_around = below.count("messages_detoured")
        await net.drop_at(below, ONE, Content(b"later"))
        await until(lambda: below.count("messages_detoured") > sent_around, 1, "that is remembered")
        await ear.hears(7, within=4 * DETOUR_AFTER)  # whom it is sent to may be below the one that died, too


async def test_a_detour_enters_only_the_trees_that_lost_their_way() -> None:
    async with small_network(relays=12, clients=4, origins=1, epoch=LONG) as net:
        ears = [await client.listen() for client in net.clients[:3]]
        top, below = a_top_with_children(net, net.clients[0])
        await top.stop()
        await net.drop_at(below, ONE, Content(b"x"))
        for ear in ears:
            await ear.hears(1, within=4 * DETOUR_AFTER)
        await trio.sleep(DETOUR_AFTER)
        lost = [client for client in net.clients[:3] if tree_of(client).parents.get(below.id) == top.id]
        others = sum(node.count("messages_dropped_here") for node in net.relays)
        sent = sum(node.count("messages_sent") for node in net.relays)
        trees = [tree_of(client) for client in net.clients[:3]]
        ideal = sum(
            tree.path_length(below.id) for tree in trees if below.id in tree.parents
        )  # else it is the host
        assert others == 1
        assert sent <= ideal + 3 * len(lost) + 2
        assert all(ear.payloads == [b"x"] for ear in ears)


async def test_a_relay_that_comes_back_is_used_again() -> None:
    async with small_network(relays=8, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        top, below = a_top_with_children(net, net.clients[0])
        await top.stop()
        await net.drop_at(below, ONE, Content(b"1"))
        await ear.hears(1, within=4 * DETOUR_AFTER)
        await top.start()
        await until(
            lambda: below.daemon.overlay.relay.peers.is_linked(relay_hop(top.id)), 600, "the link is back"
        )
        detoured = below.count("messages_detoured")
        await net.drop_at(below, ONE, Content(b"2"))
        assert await ear.hears(2) == [b"1", b"2"]
        assert below.count("messages_detoured") == detoured


async def test_a_relay_that_is_cut_off_itself_keeps_its_messages() -> None:
    async with small_network(relays=5, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        _, below = a_top_with_children(net, net.clients[0])
        others = [node for node in net.relays if node is not below]
        for node in others:
            await node.stop()
        await net.drop_at(below, ONE, Content(b"x"))
        await trio.sleep(20 * DETOUR_AFTER)
        assert below.count("messages_lost_detour") == below.count("messages_without_lease") == 0
        for node in others:
            await node.start()
        assert await ear.hears(1, within=400) == [b"x"]


async def all_ways_end(net: SmallNetwork, subscriber: Node) -> tuple[Node, list[Node]]:
    """Stop the host of a subscriber's box, where a way around may end, and all relays at the top of its tree.

    So it is in a shard that the host is not in.
    """
    host = node_of(net, key_of(net.root_hop(subscriber)))
    tops = [node_of(net, key) for key in tree_of(subscriber).children[None]]
    for node in (host, *tops):
        await node.stop()
    return host, tops


def left(net: SmallNetwork) -> list[Node]:
    return [node for node in net.relays if node.is_up]


async def test_where_all_at_the_top_are_away_a_message_comes_to_rest() -> None:
    async with small_network(relays=10, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        _, below = a_top_with_children(net, net.clients[0])
        await all_ways_end(net, net.clients[0])
        await net.drop_at(below, ONE, Content(b"x"))
        await trio.sleep(2 * AROUND_WITHIN)
        assert sum(node.count("messages_lost_detour") for node in left(net)) == 1
        assert sum(len(node.daemon.overlay.relay.forwarding._spool) for node in left(net)) == 0
        sent = sum(node.count("messages_sent") for node in left(net))
        assert sent <= len(left(net)) * (MAX_AT_ONCE + AROUND_WITHIN / REST)
        await trio.sleep(AROUND_WITHIN)
        assert sum(node.count("messages_sent") for node in left(net)) == sent
        assert ear.payloads == []


async def test_a_message_that_rests_arrives_when_one_relay_at_the_top_is_back() -> None:
    async with small_network(relays=10, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        _, below = a_top_with_children(net, net.clients[0])
        host, tops = await all_ways_end(net, net.clients[0])
        await net.drop_at(below, ONE, Content(b"x"))
        await trio.sleep(AROUND_WITHIN / 2)
        assert ear.payloads == []
        await host.start()
        await tops[-1].start()
        assert await ear.hears(1, within=AROUND_WITHIN / 2) == [b"x"]
        assert sum(node.count("messages_lost_detour") for node in left(net)) == 0


async def test_a_message_that_rests_holds_up_no_other_trees() -> None:
    async with small_network(relays=10, clients=2, origins=1, epoch=LONG) as net:
        ears = [await client.listen(topic) for client, topic in zip(net.clients, (ONE, TWO), strict=True)]
        host, tops = await all_ways_end(net, net.clients[0])
        (planned,) = net.clients[1].route(TWO).planned.values()
        tree = planned.installation.tree
        away = {node.id for node in (host, *tops)}
        origin = next(node for node in left(net) if tree.parents.get(node.id) in away)
        for number in range(20):
            await net.drop_at(origin, ONE, Content(b"%d" % number))
        await trio.sleep(4 * DETOUR_AFTER)
        await net.drop_at(origin, TWO, Content(b"y"))
        assert await ears[1].hears(1, within=DETOUR_AFTER) == [b"y"]
        assert ears[0].payloads == []


async def test_what_the_next_hop_does_not_know_goes_around_at_once() -> None:
    async with small_network(relays=12, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        top, below = a_top_with_children(net, net.clients[0])
        (lease,) = [held for held in book_of(top).leases() if waits(held.hop)]
        book_of(top).prune(lease)
        began = trio.current_time()
        await net.drop_at(below, ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]
        assert trio.current_time() - began < DETOUR_AFTER
        assert below.count("messages_detoured") == 1


async def test_a_lease_whose_next_hop_never_knows_it_is_pruned() -> None:
    """A topic is pointed at a victim: it costs the victim a few messages from each relay, and then none."""
    # What has no route is handed on at random, to the victim now and then: not here.
    async with small_network(relays=6, clients=2, origins=1, epoch=LONG, late_routes=False) as net:
        ear = await net.clients[0].listen()
        top, below = a_top_with_children(net, net.clients[0])
        for held in book_of(top).leases():
            book_of(top).prune(held)
        for number in range(detours.PRUNE_AFTER):
            await net.drop_at(below, ONE, Content(b"%d" % number))
            await ear.hears(number + 1)
        await until(lambda: below.count("leases_pruned") == 1, what="the lease is pruned")
        assert len(book_of(below)) == 0
        unrouted = top.count("messages_unrouted")
        await net.drop_at(below, ONE, Content(b"more"))
        await trio.sleep(10)
        assert top.count("messages_unrouted") == unrouted


async def test_one_message_that_arrives_keeps_a_lease() -> None:
    async with small_network(relays=6, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        top, below = a_top_with_children(net, net.clients[0])
        (lease,) = [held for held in book_of(top).leases() if waits(held.hop)]
        count = 0
        for _ in range(2):
            book_of(top).prune(lease)
            for _ in range(detours.PRUNE_AFTER - 1):
                await net.drop_at(below, ONE, Content(b"%d" % count))
                count += 1
                await ear.hears(count)
            book_of(top).restore(lease)
            await net.drop_at(below, ONE, Content(b"%d" % count))
            count += 1
            await ear.hears(count)
        assert below.count("leases_pruned") == 0
        assert len(book_of(below)) == 1


async def test_a_stranger_gets_no_detour_by_guessing() -> None:
    """The bypass tokens of other trees are nothing a relay can compute."""
    async with small_network(relays=4, clients=2, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        await ear.hears(1)
        held = [lease for node in net.relays for lease in book_of(node).leases() if not is_box(lease.hop)]
        bypasses = {lease.bypass for lease in held}
        assert len(bypasses) == 1
        assert bypasses.isdisjoint(
            element for n in net.relays for held in book_of(n).leases() for element in held.elements
        )


async def test_links_to_next_hops_are_open_before_the_first_message_and_stay() -> None:
    async with small_network(relays=6, clients=1, epoch=LONG) as net:
        await net.clients[0].listen()
        root = net.root_hop(net.clients[0])
        tops = [node_of(net, key) for key in tree_of(net.clients[0]).children[None]]
        await until(
            lambda: all(top.daemon.overlay.relay.peers.is_linked(root) for top in tops),
            20,
            "dialled ahead",
        )
        await trio.sleep(5)
        opened = sum(node.count("links_opened") for node in net.relays)
        await trio.sleep(3 * IDLE)
        assert all(top.daemon.overlay.relay.peers.is_linked(root) for top in tops)
        assert sum(node.count("links_opened") for node in net.relays) == opened


@pytest.mark.slow
async def test_a_link_that_no_lease_needs_is_closed() -> None:
    async with small_network(relays=2, clients=1, epoch=LONG) as net:
        await net.clients[0].listen()
        await trio.sleep(10)
        await net.clients[0].daemon.service.unsubscribe(ONE)
        await trio.sleep(2 * IDLE)
        assert all(node.daemon.overlay.relay.peers.open_links() == 0 for node in net.relays)
        assert all(not node.daemon.overlay.relay.peers._peers for node in net.relays)
