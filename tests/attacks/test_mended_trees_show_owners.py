"""What relays are told of a tree after its installation does not depend on whether its owner is there.

A relay that lost its seat, or came back, is known to all by the rosters. Those beside it, and itself, were
told by the owner, through the host, at the next mending: or when the owner was back. What a host answers
hides nothing of that. The next day is told at a moment that is drawn anew, not when the owner is back; so are
relays told of the other host.
"""

from __future__ import annotations

import pytest
import trio
from hosted_network import box_of, hosts_of, in_use, subscribed
from small_network import DAY_SECONDS, EPOCH_SECONDS, Node, SmallNetwork, small_network, until

from hushcast_protocol.base.versions.manner import NEWEST

pytestmark = pytest.mark.slow


async def told_of_two_days(net: SmallNetwork) -> Node:
    """Have a subscription told of today and tomorrow; return a relay beside which others stand."""
    subscriber = net.clients[0]
    await subscribed(subscriber)
    route = subscriber.route()
    await until(lambda: len(route.planned) == 2, DAY_SECONDS, "tomorrow is told")
    tree = route.on(net.calendar.day(net.now))[0].installation.tree
    hosts = box_of(subscriber).hosts.relays
    await trio.sleep(EPOCH_SECONDS)
    return next(
        net.relay(relay)
        for relay in tree.parents
        if relay not in hosts and (tree.children.get(relay) or tree.parents[relay] is not None)
    )


@pytest.mark.parametrize("is_there", [True, False])
async def test_relays_beside_one_that_leaves_and_itself_are_told_nothing(is_there: bool) -> None:
    async with small_network(relays=8) as net:
        subscriber, relay = net.clients[0], await told_of_two_days(net)
        if not is_there:
            await subscriber.stop()
        told = net.count("parcels_opened")
        await relay.stop()
        await trio.sleep(7 * EPOCH_SECONDS)
        await relay.start()
        await trio.sleep(3 * EPOCH_SECONDS)
        if not is_there:
            await subscriber.start()
            await trio.sleep(EPOCH_SECONDS)
        assert net.count("parcels_opened") == told


@pytest.mark.parametrize("seed", [1, 2])
async def test_who_comes_back_does_not_tell_of_the_next_day_at_once(seed: int) -> None:
    async with small_network(relays=5, clients=1, seed=seed) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        await subscriber.stop()
        await trio.sleep(12 * EPOCH_SECONDS)
        await subscriber.start()
        told = net.count("parcels_opened")
        await trio.sleep(NEWEST.attach_within + NEWEST.retell_within + EPOCH_SECONDS / 2)
        assert net.count("parcels_opened") == told
        await until(lambda: len(subscriber.route().planned) == 2, DAY_SECONDS / 3, "tomorrow is told")


@pytest.mark.parametrize("seed", [1, 2])  # of thirty one draws a moment within the two seconds
async def test_relays_are_not_told_of_another_host_as_soon_as_it_is_used(seed: int) -> None:
    async with small_network(relays=6, clients=1, seed=seed) as net:
        subscriber = net.clients[0]
        await told_of_two_days(net)
        first, second = hosts_of(net, subscriber)
        planned = subscriber.route().on(net.calendar.day(net.now))[0]
        for host, change in ((second, first.stop), (first, first.start)):
            await change()
            await until(lambda host=host: in_use(net, subscriber) is host, 4 * EPOCH_SECONDS)
            told = net.count("parcels_opened")
            await trio.sleep(2)
            assert net.count("parcels_opened") == told
            await until(lambda host=host: planned.host == host.id, DAY_SECONDS, "they are told")
        assert planned.installation.day == net.calendar.day(net.now), "before the day ends"
