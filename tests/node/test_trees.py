"""Trees over epochs and days: they stay, are mended for the next day, and may be several."""

from __future__ import annotations

import pytest
import trio
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.routes.route import TreeInstallation
from hushcast_protocol.base.crypto.secrets import LeaseSecret, Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.installations import HostRoot, Installation
from hushcast_protocol.overlay.profile import Root
from hushcast_protocol.overlay.tree import Tree


def trees_of(subscriber: Node) -> list[Tree]:
    return [planned.installation.tree for planned in subscriber.route().planned.values()]


def a_busy_relay(net: SmallNetwork, subscriber: Node) -> Node:
    tree = trees_of(subscriber)[0]
    return net.relay(next(relay for relay in tree.parents if tree.children.get(relay)))


@pytest.mark.slow
async def test_the_tree_of_the_next_day_is_that_of_today() -> None:
    async with small_network(relays=7) as net:
        await net.clients[0].listen()
        await until(lambda: len(trees_of(net.clients[0])) == 2, 24 * EPOCH_SECONDS, "tomorrow is installed")
        today, tomorrow = trees_of(net.clients[0])
        assert today == tomorrow


@pytest.mark.slow
async def test_as_published_every_day_has_a_tree_of_its_own() -> None:
    listed = {"root": Root.LISTED, "edge_elements": False, "detours": False}
    async with small_network(relays=9, clients=0, **listed) as net:
        await net.relays[0].listen()
        await until(lambda: len(trees_of(net.relays[0])) == 2, 24 * EPOCH_SECONDS, "tomorrow is installed")
        today, tomorrow = trees_of(net.relays[0])
        assert today != tomorrow


@pytest.mark.slow
async def test_a_relay_gone_for_good_is_gone_around_and_replaced_the_next_day() -> None:
    async with small_network(relays=12, clients=2, origins=1) as net:
        ear = await net.clients[0].listen()
        gone = a_busy_relay(net, net.clients[0])
        (before,) = trees_of(net.clients[0])
        told = net.count("parcels_opened")
        await gone.stop()
        others = [relay for relay in net.relays if relay is not gone]
        for number, relay in enumerate(others):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
        await ear.hears(len(others))
        detoured = net.count("messages_detoured")
        assert detoured > 0
        day = net.calendar.day(net.now)
        await until(lambda: len(trees_of(net.clients[0])) == 2, DAY_SECONDS, "tomorrow is installed")
        assert net.clients[0].route().on(day)[0].installation.tree == before
        assert net.count("parcels_opened") - told <= 2 * len(others), "the next day's tree alone"
        await net.sleep_until(net.calendar.day_start(day + 1) + 2 * EPOCH_SECONDS)
        after = net.clients[0].route().on(day + 1)[0].installation.tree
        assert gone.id not in after.parents
        moved = {relay for relay in after.parents if after.parents[relay] != before.parents[relay]}
        assert len(moved) <= len(before.children[gone.id]) + 1
        detoured = net.count("messages_detoured")
        for number, relay in enumerate(others):
            await net.drop_at(relay, ONE, Content(b"again %d" % number))
        await ear.hears(2 * len(others))
        assert net.count("messages_detoured") == detoured


@pytest.mark.slow
async def test_a_short_absence_changes_no_tree() -> None:
    """Who stops a relay for an hour learns nothing of whose trees stood on it."""
    async with small_network(relays=8, clients=1) as net:
        await net.clients[0].listen()
        relay = a_busy_relay(net, net.clients[0])
        before = trees_of(net.clients[0])
        await relay.stop()
        await trio.sleep(1.5 * EPOCH_SECONDS)
        await relay.start()
        await trio.sleep(4 * EPOCH_SECONDS)
        assert trees_of(net.clients[0]) == before


@pytest.mark.slow
async def test_a_second_tree_carries_what_the_first_loses() -> None:
    async with small_network(relays=10, clients=2, origins=1, trees=2, epoch=4 * 3600) as net:
        ear = await net.clients[0].listen()
        assert sum(net.leases().values()) == 2 * net.seats
        first, second = trees_of(net.clients[0])
        assert first != second
        origin, lost = next(
            (relay, above)
            for relay, above in first.parents.items()
            if above is not None and second.parents[relay] != above
        )
        net.relay(lost).gate.shut()  # it answers nothing, so no detour comes for half a minute
        began = trio.current_time()
        await net.drop_at(net.relay(origin), ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]
        assert trio.current_time() - began < 20
        net.relay(lost).gate.open()
        await trio.sleep(120)
        assert ear.payloads == [b"x"]


def test_who_confirmed_is_not_told_again_where_nobody_at_the_top_was_there() -> None:
    host, top, below = (RelayId(bytes([number] * 32)) for number in range(3))
    tree = Tree({top: None, below: top})
    root, secret = HostRoot(Seed(bytes(32)), host), LeaseSecret(bytes(32))
    planned = TreeInstallation(
        b"name", 0, Installation(10_000, root, tree, bytes(16), (), secret), set(tree.parents)
    )
    planned.confirm({below})
    planned.was_told()
    assert planned.due == planned.unconfirmed == {top}
