"""Links of a day's leases are opened in the last epoch before it, and are there when it begins."""

from __future__ import annotations

import pytest
from cut_network import CutNetwork, cut_network
from hosted_network import box_of
from small_network import Node, until

from hushcast_overlay.relay.kept_links import CONNECT_WITHIN, EARLIEST_AHEAD, LATEST_AHEAD, PREPARE
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.hops import host_hop, is_box, relay_hop

pytestmark = pytest.mark.slow
EPOCH = 600  # seconds: links that a tree was told by have ended before the day's last epoch


def next_hops(node: Node, day: int) -> set[Hop]:
    """Those that a relay opens links to: a box's owner comes by itself."""
    assert node.daemon.overlay.relay is not None
    return {hop for hop in node.daemon.overlay.relay.leases.book.next_hops((day,)) if not is_box(hop)}


def tops_of(net: CutNetwork, day: int) -> set[str]:
    """Who stands directly below the host on a day."""
    (planned,) = net.clients[0].route().on(day)
    return {net.relay(top).name for top in planned.installation.tree.children[None]}


def linked_to_host(net: CutNetwork) -> set[str]:
    """Who has a link for the boxes of the subscription's host."""
    hop = host_hop(box_of(net.clients[0]).hosts.current)
    return {node.name for node in net.relays if linked(node, {hop})}


def linked(node: Node, hops: set[Hop]) -> set[Hop]:
    assert node.daemon.overlay.relay is not None
    return {hop for hop in hops if node.daemon.overlay.relay.peers.is_linked(hop)}


def only_of(net: CutNetwork, node: Node, day: int) -> set[Hop]:
    """Next hops of a relay's on a day that it has no link with on the day before."""
    before = next_hops(node, day - 1)
    back = {
        relay_hop(other.id)
        for other in net.relays
        if node.identity is not None and relay_hop(node.id) in next_hops(other, day - 1)
    }
    return next_hops(node, day) - before - back


async def test_none_is_there_before_the_last_epoch_and_all_are_when_the_day_begins() -> None:
    async with cut_network(clients=1, epoch=EPOCH, later=14) as net:
        (subscriber,) = net.clients
        await subscriber.listen()
        tomorrow, midnight = net.today + 1, net.midnight()
        await net.sleep_until(midnight - EARLIEST_AHEAD * EPOCH - 1)
        installed = [node for node in net.relays if next_hops(node, tomorrow)]
        assert len(installed) == len(subscriber.route().on(tomorrow)[0].installation.tree.parents)
        assert not linked_to_host(net) & (tops_of(net, tomorrow) - tops_of(net, tomorrow - 1))
        fresh = {node.name: only_of(net, node, tomorrow) for node in installed}
        assert sum(map(len, fresh.values())) > 1
        assert not any(linked(node, fresh[node.name]) for node in installed)
        # Today's are there all the while.
        assert linked_to_host(net) >= tops_of(net, tomorrow - 1)
        moments: dict[str, float] = {}
        while net.now < midnight - LATEST_AHEAD * EPOCH + CONNECT_WITHIN:
            for node in installed:
                if linked(node, fresh[node.name]):
                    moments.setdefault(node.name, net.now)
            await net.sleep_until(net.now + 1)
        assert linked_to_host(net) >= tops_of(net, tomorrow)
        assert all(linked(node, next_hops(node, tomorrow)) == next_hops(node, tomorrow) for node in installed)
        assert len(moments) > 1
        assert len(set(moments.values())) == len(moments), "each relay has a moment of its own"
        await net.sleep_until(midnight + 1)
        assert all(linked(node, next_hops(node, tomorrow)) == next_hops(node, tomorrow) for node in installed)


async def test_a_lease_that_comes_in_the_last_epoch_is_prepared_for_and_an_earlier_one_is_not() -> None:
    async with cut_network(clients=1, epoch=EPOCH) as net:
        (subscriber,) = net.clients
        await net.sleep_until(net.midnight() - 0.9 * LATEST_AHEAD * EPOCH)
        tomorrow = net.today + 1
        await subscriber.listen()
        route = subscriber.route()
        await until(lambda: bool(route.on(tomorrow)), net.midnight() - net.now)
        await until(lambda: linked_to_host(net) >= tops_of(net, tomorrow), 4 * PREPARE + 10)
        assert net.now < net.midnight()
