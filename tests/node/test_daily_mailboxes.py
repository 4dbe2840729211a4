"""Days that are cut into shards: each has a mailbox and a tree of its own."""

from __future__ import annotations

import pytest
import trio
from cut_network import CutNetwork, cut_network
from small_network import EPOCH_SECONDS, ONE, TWO, Ear, Node, until

from hushcast_overlay.route import EARLIEST_RENEWAL, LATEST_RENEWAL
from hushcast_protocol.base.addresses import Address

pytestmark = pytest.mark.network
EPOCH = EPOCH_SECONDS


async def assert_each_once(ear: Ear, sent: list[bytes]) -> None:
    await ear.hears(len(sent))
    await trio.sleep(EPOCH)
    assert sorted(ear.payloads) == sorted(sent)


async def renewed(net: CutNetwork, *subscribers: Node) -> None:
    """Wait until all that these want is installed for tomorrow, too."""
    tomorrow = net.today + 1
    await net.sleep_until(net.midnight() - (LATEST_RENEWAL + 1 / 24) * net.calendar.day_seconds)
    routes = [route for node in subscribers for route in node.daemon.overlay.routes.held]
    await until(
        lambda: all(route.on(tomorrow) and not route.on(tomorrow)[0].unconfirmed for route in routes),
        4 * EPOCH,
        "tomorrow is installed",
    )


async def kept(node: Node, kind: str) -> int:
    return len(await node.store.scan(kind))


async def test_nothing_is_lost_or_doubled_over_changes_of_day() -> None:
    async with cut_network() as net:
        subscriber, publisher = net.clients
        first = net.today
        assert net.is_cut(first)
        ear = await subscriber.listen()
        assert 1 < ear.feed.nodes < len(net.relays)
        sent = await net.publish_until(net.midnight(2) + 4 * EPOCH, 20, publisher)
        await assert_each_once(ear, sent)
        route = subscriber.route()
        assert list(route.planned) == [(first + 2, 0)]
        assert list(route.daily) == [first + 2]
        assert route.lasting is None
        for counter in ("messages_expired", "refused_day", "roster_mismatches"):
            assert net.count(counter) == 0


async def test_each_day_has_a_mailbox_a_tree_and_a_moment_of_its_own() -> None:
    async with cut_network() as net:
        subscriber = net.clients[0]
        for topic in (ONE, TWO):
            await subscriber.listen(topic)
        routes = [subscriber.route(topic) for topic in (ONE, TWO)]
        shares: set[float] = set()
        seen: set[Address | None] = set()
        for _ in range(2):
            day, midnight = net.today, net.midnight()
            await net.sleep_until(midnight - EARLIEST_RENEWAL * net.calendar.day_seconds - 1)
            assert [list(route.daily) for route in routes] == [[day], [day]]
            await renewed(net, subscriber)
            for route in routes:
                one, two = route.daily[day], route.daily[day + 1]
                assert one.seed != two.seed
                assert net.is_open(one.address)
                assert net.is_open(two.address)
                seen |= {one.address, two.address}
                shares.add(round((midnight - net.opened(two)) / net.calendar.day_seconds, 6))
                (old,), (new,) = route.on(day), route.on(day + 1)
                assert (old.leads_to(one.seed), old.leads_to(two.seed)) == (True, False)
                assert (new.leads_to(one.seed), new.leads_to(two.seed)) == (False, True)
                tree = new.installation.tree
                for relay in net.relays:
                    assert route.is_top(two.seed, relay.id) == (relay.id in tree.children[None])
            assert await kept(subscriber, "daily-mailbox") == 4
            assert await kept(subscriber, "mailbox") == 0
            before = [route.daily[day].address for route in routes]
            await net.sleep_until(net.calendar.lapse(day) - 1)
            assert all(map(net.is_open, before)), "served until the day lapses"
            await net.sleep_until(net.calendar.lapse(day) + EPOCH)
            assert not any(map(net.is_open, before))
            assert await kept(subscriber, "daily-mailbox") == 2
        assert len(seen) == 6
        assert len(shares) == 4, "each was opened at another time of its day"
        assert LATEST_RENEWAL - 0.01 < min(shares) < max(shares) < EARLIEST_RENEWAL + 0.01
