"""Days that are cut into shards: each has a mailbox and a tree of its own."""

from __future__ import annotations

import pytest
import trio
from cut_network import CutNetwork, cut_network
from small_network import EPOCH_SECONDS, ONE, TWO, Ear, Node, until

from hushcast_overlay.routes.route import EARLIEST_RENEWAL, LATEST_RENEWAL, OverlayRoute
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.profile import Root

pytestmark = pytest.mark.slow
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
    async with cut_network(root=Root.MAILBOX) as net:
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
    async with cut_network(root=Root.MAILBOX) as net:
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


async def test_the_spare_becomes_the_mailbox_of_today() -> None:
    async with cut_network(clients=1, root=Root.MAILBOX) as net:
        (subscriber,) = net.clients
        spare = subscriber.daemon.overlay.routes.spare
        await until(lambda: spare.is_ready)
        known = set(net.wires.listeners)
        ear = await subscriber.listen()
        mailbox = subscriber.route().daily[net.today]
        assert mailbox.address in known
        assert subscriber.route().lasting is None
        assert (await kept(subscriber, "daily-mailbox"), await kept(subscriber, "mailbox")) == (1, 0)
        await net.relays[0].daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]


async def test_who_subscribes_late_opens_tomorrows_later() -> None:
    async with cut_network(root=Root.MAILBOX) as net:
        subscriber, publisher = net.clients
        await net.sleep_until(net.midnight() - LATEST_RENEWAL / 2 * net.calendar.day_seconds)
        began, tomorrow = net.now, net.today + 1
        ear = await subscriber.listen()
        route = subscriber.route()
        left = net.midnight() - began
        await until(lambda: route.on(tomorrow) and not route.on(tomorrow)[0].unconfirmed, left)
        assert net.now < net.midnight()
        assert began + 1 < net.opened(route.daily[tomorrow]) < began + left / 2 + 1
        sent = await net.publish_until(net.midnight() + EPOCH, 10, publisher)
        await assert_each_once(ear, sent)


async def test_after_a_restart_mailboxes_are_the_same_and_tomorrows_comes_back_later() -> None:
    async with cut_network(root=Root.MAILBOX) as net:
        subscriber, publisher = net.clients
        (await subscriber.listen()).close()
        await renewed(net, subscriber)
        day, before = net.today, subscriber.route()
        await subscriber.stop()
        await publisher.daemon.service.publish(ONE, Content(b"while away"))
        await trio.sleep(30)
        began = net.now
        await subscriber.start()
        ear = await subscriber.listen()
        assert await ear.hears(1) == [b"while away"]
        after = subscriber.route()
        for one in (day, day + 1):
            assert after.daily[one].seed == before.daily[one].seed
            assert after.daily[one].address == before.daily[one].address
            assert after.on(one)[0].installation == before.on(one)[0].installation
        assert net.opened(after.daily[day]) < began + 1
        assert not net.is_open(after.daily[day + 1].address)
        assert after.no_other_before < net.midnight() - EPOCH
        await net.sleep_until(after.no_other_before - 1)
        assert not net.is_open(after.daily[day + 1].address)
        await until(lambda: net.is_open(after.daily[day + 1].address), EPOCH + 1)
        sent = await net.publish_until(net.midnight() + EPOCH, 20, publisher)
        await assert_each_once(ear, [b"while away", *sent])


@pytest.mark.parametrize("restarts", [False, True])
async def test_after_a_restart_the_tree_of_today_is_mended_as_before(restarts: bool) -> None:
    async with cut_network(root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        day, before = net.today, (await subscriber.listen()).feed.nodes
        if restarts:
            await subscriber.restart()
        (planned,) = subscriber.route().on(day)
        await net.relay(next(iter(planned.installation.tree.parents))).stop()  # for good
        await trio.sleep(9 * EPOCH)
        assert net.today == day
        (described,) = subscriber.daemon.service.subscriptions()
        assert described["nodes"] == before - 1


async def test_who_is_away_over_midnight_gets_what_was_published_then() -> None:
    async with cut_network(root=Root.MAILBOX) as net:
        subscriber, publisher = net.clients
        (await subscriber.listen()).close()
        await renewed(net, subscriber)
        tomorrow = net.today + 1
        await net.sleep_until(net.midnight() - EPOCH)
        await subscriber.stop()
        sent = await net.publish_until(net.calendar.day_start(tomorrow) + 2 * EPOCH, 15, publisher)
        await subscriber.start()
        ear = await subscriber.listen()
        expected = [each for each in sent if float(each.split()[1]) >= net.calendar.day_start(tomorrow)]
        assert expected
        await until(lambda: set(expected) <= set(ear.payloads))


async def test_a_mailbox_of_tomorrow_that_is_not_published_holds_up_nothing_else() -> None:
    async with cut_network(root=Root.MAILBOX) as net:
        subscriber, publisher = net.clients
        ear, other = await subscriber.listen(ONE), await subscriber.listen(TWO)
        routes = [subscriber.route(ONE), subscriber.route(TWO)]
        tomorrow = net.today + 1
        first = min(routes, key=lambda route: -route.daily[net.today].renewal)
        second = next(route for route in routes if route is not first)
        net.wires.fails = True
        await until(lambda: tomorrow in first.daily, net.midnight() - net.now, "its moment has come")
        await trio.sleep(0.1)
        net.wires.fails = False
        await renewed_but(net, first, second)
        assert not first.on(tomorrow)
        away = next(
            node for node in net.relays if node.id in first.on(net.today)[0].installation.tree.parents
        )
        await away.stop()
        await net.sleep_until(net.calendar.epoch_start(net.calendar.epoch(net.now) + 1) + 5)
        await away.start()
        for topic, heard in ((ONE, ear), (TWO, other)):
            await publisher.daemon.service.publish(topic, Content(b"still"))
            assert await heard.hears(1) == [b"still"]
        address = first.daily[tomorrow].address
        assert address is not None
        net.wires.listeners[address]._fails = False  # type: ignore[attr-defined]
        await until(lambda: bool(first.on(tomorrow)), 2 * EPOCH, "it is told as soon as it can be found")


async def renewed_but(net: CutNetwork, held_up: OverlayRoute, other: OverlayRoute) -> None:
    tomorrow = net.today + 1
    await until(lambda: bool(other.on(tomorrow)), net.midnight() - net.now, "the other is installed")
    assert not held_up.on(tomorrow)


async def test_unsubscribing_ends_the_mailboxes_and_trees_of_both_days() -> None:
    async with cut_network(root=Root.MAILBOX) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        await renewed(net, subscriber)
        route = subscriber.route()
        addresses = [mailbox.address for mailbox in route.mailboxes]
        assert len(addresses) == 2
        assert all(map(net.is_open, addresses))
        ear.close()
        await subscriber.daemon.service.unsubscribe(ONE)
        assert (await kept(subscriber, "daily-mailbox"), await kept(subscriber, "mailbox")) == (0, 0)
        await until(lambda: not any(map(net.is_open, addresses)))
        await until(lambda: set(net.leases().values()) == {0}, EPOCH)
        await until(lambda: not subscriber.daemon.overlay.routes.held)


async def test_from_uncut_days_to_cut_ones_and_back() -> None:
    async with cut_network(relays=6, root=Root.MAILBOX) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        route = subscriber.route()
        first, lasting = net.today, route.lasting
        assert lasting is not None
        assert not net.is_cut(first)
        sent = await net.publish_until(net.now + EPOCH, 20, publisher)
        for number in range(4):
            newcomer = net.add(f"newcomer-{number}", True)
            net.relays.append(newcomer)
            await newcomer.start()
        sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher)
        assert net.is_cut(first + 1)
        assert list(route.daily) == [first + 1]
        assert route.lasting is None
        assert not net.is_open(lasting.address)
        for newcomer in net.relays[6:]:
            await newcomer.stop()
        sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher)
        again = route.lasting
        assert not net.is_cut(first + 2)
        assert again is not None
        assert again.seed != lasting.seed
        assert route.daily == {}
        assert len(route.on(first + 2)[0].installation.tree.parents) == 6
        assert (await kept(subscriber, "daily-mailbox"), await kept(subscriber, "mailbox")) == (0, 1)
        tree = route.on(first + 2)[0].installation.tree
        sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher)
        assert route.lasting is again
        assert route.on(first + 3)[0].installation.tree == tree, "a tree to a mailbox that stays goes on"
        await assert_each_once(ear, sent)
