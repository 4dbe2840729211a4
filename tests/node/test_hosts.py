"""Subscriptions whose box is at a host: what comes, while owner and hosts come and go."""

from __future__ import annotations

import pytest
import trio
from hanging_disk import Disk
from hosted_network import LONG, box_of, copied, drop_everywhere, hosts_of, in_use, lose_disk, subscribed
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, TWO, small_network, until

from hushcast_protocol.base.link.hop_link import ACKNOWLEDGE_WITHIN
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay import box_shares
from hushcast_protocol.overlay.hops import box_hop
from hushcast_protocol.overlay.installations import HostRoot


async def test_what_is_dropped_anywhere_comes_once_and_the_owner_has_no_service() -> None:
    async with small_network() as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        host = in_use(net, subscriber)
        (planned,) = subscriber.route().planned.values()
        assert host.id not in planned.installation.tree.parents
        assert planned.installation.tree.parents.keys() == {relay.id for relay in net.relays} - {host.id}
        assert ear.feed.nodes == len(net.relays) - 1, "the host is no relay that confirmed"
        assert sum(net.leases().values()) == net.seats
        assert len(net.wires.listeners) == 1 + len(net.relays), "directory and relays"
        sent = [b"%d" % number for number in range(2 * len(net.relays))]
        await drop_everywhere(net, *sent)
        assert sorted(await ear.hears(len(sent))) == sorted(sent)
        await trio.sleep(EPOCH_SECONDS)
        assert sorted(ear.payloads) == sorted(sent)
        assert host.count("messages_without_box") == 0
        assert host.daemon.overlay.relay is not None
        assert len(host.daemon.overlay.relay.box_links) == 1


async def test_a_link_stays_when_what_it_brought_is_acknowledged() -> None:
    async with small_network(epoch=LONG) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        host = in_use(net, subscriber).id
        link = box_of(subscriber).link(host)
        for payload in (b"one", b"two"):
            await net.drop_at(net.relays[0], ONE, Content(payload))
            await ear.hears(1)
            await trio.sleep(2 * ACKNOWLEDGE_WITHIN)  # nobody says anything meanwhile
            assert box_of(subscriber).link(host) is link


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 4))])
async def test_what_has_a_receipt_comes_once_whoever_is_restarted_when(seed: int) -> None:
    async with small_network(epoch=LONG, seed=seed, relays=4, origins=1) as net:
        subscriber, publisher = net.clients
        await subscribed(subscriber)
        sent: list[bytes] = []

        async def restarts() -> None:
            while True:
                await trio.sleep(net.env.uniform(0.0, 4.0))
                top = net.relay(
                    next(iter(subscriber.route().on(net.calendar.day(net.now)))).installation.tree.children[
                        None
                    ][0]
                )
                await (in_use(net, subscriber), subscriber, top)[net.env.below(3)].restart()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(restarts)
            for number in range(60):
                sent.append(b"%d" % number)
                await publisher.daemon.service.publish(ONE, Content(sent[-1]))
                await trio.sleep(net.env.uniform(0.0, 2.0))
            nursery.cancel_scope.cancel()
        for node in net.nodes:
            if not node.is_up:
                await node.start()
        ear = await subscriber.listen()
        assert sorted(await ear.hears(len(sent), 600)) == sorted(sent)
        await trio.sleep(600)
        assert sorted(ear.payloads) == sorted(sent)
        assert box_of(subscriber).hosts.in_use == 0


async def test_what_comes_while_the_host_is_away_waits_for_it() -> None:
    async with small_network() as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        host = in_use(net, subscriber)
        await host.stop()
        sent = [b"%d" % number for number in range(8)]
        await drop_everywhere(net, *sent)
        await trio.sleep(EPOCH_SECONDS)
        assert ear.payloads == []
        assert net.count("messages_detoured") == 0
        await host.start()
        assert sorted(await ear.hears(len(sent))) == sorted(sent)
        assert in_use(net, subscriber) is host


@pytest.mark.slow
async def test_the_second_host_is_used_after_two_epochs_and_the_first_again_when_it_answers() -> None:
    async with small_network(relays=6) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        first, second = hosts_of(net, subscriber)
        early, late, again = (
            [b"%s %d" % (when, n) for n in range(10)] for when in (b"early", b"late", b"again")
        )
        await first.stop()
        stopped = net.now
        await drop_everywhere(net, *early)
        await until(lambda: in_use(net, subscriber) is second, 10 * EPOCH_SECONDS)
        assert (
            NEWEST.away_epochs * EPOCH_SECONDS
            <= net.now - stopped
            <= (NEWEST.away_epochs + 2) * EPOCH_SECONDS
        )
        (planned,) = subscriber.route().planned.values()
        root = HostRoot(box_of(subscriber).seed, second.id)
        away = {first.id}
        told = "relays are told at a drawn moment"
        await until(
            lambda: planned.installation.root == root and not planned.unconfirmed - away, DAY_SECONDS, told
        )
        assert second.id not in planned.installation.tree.parents
        await drop_everywhere(net, *late)
        assert sorted(await ear.hears(20)) == sorted([*early, *late]), "what waited for the first comes, too"
        assert net.count("messages_moved") >= len(early)
        await first.start()
        await until(lambda: in_use(net, subscriber) is first, 3 * EPOCH_SECONDS)
        root = HostRoot(box_of(subscriber).seed, first.id)
        await until(lambda: planned.installation.root == root and not planned.unconfirmed, DAY_SECONDS, told)
        assert first.id not in planned.installation.tree.parents
        assert second.id in planned.installation.tree.parents
        await trio.sleep(2 * EPOCH_SECONDS)  # else a first host that was away for long may not be listed yet
        await drop_everywhere(net, *again)
        await ear.hears(30)
        await trio.sleep(EPOCH_SECONDS)
        assert sorted(ear.payloads) == sorted([*early, *late, *again])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 3))])
async def test_nothing_is_lost_or_doubled_while_a_box_moves_back_and_forth(seed: int) -> None:
    """One host at a time is away for up to four epochs, the owner restarts, and all are back by midnight.

    The first is, to begin with, for three at least: so the second is used.
    """
    epoch = 300
    async with small_network(relays=7, epoch=epoch, seed=seed) as net:
        subscriber, publisher = net.clients
        await subscribed(subscriber)
        sent: list[bytes] = []
        used = set()

        async def outages() -> None:
            for least in (1.5, 0.0, 0.0, 0.0):
                await trio.sleep(net.env.uniform(0.0, epoch))
                away = hosts_of(net, subscriber)[0 if least else net.env.below(3) // 2]
                await away.stop()
                for _ in range(2):
                    await trio.sleep(net.env.uniform(least, 2.0) * epoch)
                    used.add(in_use(net, subscriber).id)
                    await subscriber.restart()
                await away.start()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(outages)
            while net.calendar.epoch(net.now) % 24 < 17:
                sent.append(b"%d" % len(sent))
                await publisher.daemon.service.publish(ONE, Content(sent[-1]))
                await trio.sleep(net.env.uniform(0.0, 60.0))
        ear = await subscriber.listen()
        assert sorted(await ear.hears(len(sent), 3 * epoch)) == sorted(sent)
        await trio.sleep(2 * epoch)
        assert sorted(ear.payloads) == sorted(sent)
        assert len(used) == 2
        assert in_use(net, subscriber) is hosts_of(net, subscriber)[0]


@pytest.mark.slow
async def test_an_owner_that_was_cut_off_itself_changes_nothing() -> None:
    """Top relays would see, else, when its network is away."""
    async with small_network(relays=6) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        first = in_use(net, subscriber)
        (planned,) = subscriber.route().planned.values()
        root = planned.installation.root
        await until(lambda: not planned.unconfirmed)
        parcels = net.count("parcels_opened")
        subscriber.gate.shut()
        sent = [b"%d" % number for number in range(12)]
        await drop_everywhere(net, *sent)
        await trio.sleep((NEWEST.away_epochs + 4) * EPOCH_SECONDS)
        assert len(ear.payloads) < len(sent)
        subscriber.gate.open()
        assert sorted(await ear.hears(len(sent))) == sorted(sent)
        await trio.sleep(EPOCH_SECONDS)
        assert in_use(net, subscriber) is first
        assert planned.installation.root == root
        assert net.count("parcels_opened") == parcels


@pytest.mark.parametrize("seed", [2, 3])
async def test_a_relay_that_subscribes_may_be_its_own_host(seed: int) -> None:
    async with small_network(relays=2, clients=0, seed=seed) as net:
        ears = [await relay.listen() for relay in net.relays]
        assert any(in_use(net, relay) is relay for relay in net.relays)
        sent = [b"%d" % number for number in range(6)]
        await drop_everywhere(net, *sent)
        for ear in ears:
            assert sorted(await ear.hears(len(sent))) == sorted(sent)
        await trio.sleep(EPOCH_SECONDS)
        assert [len(ear.heard) for ear in ears] == [len(sent)] * 2


@pytest.mark.slow
async def test_while_nobody_knows_of_a_box_its_second_host_is_tried_soon() -> None:
    async with small_network(relays=6, epoch=LONG) as net:
        subscriber, other = net.clients
        await subscribed(subscriber)
        store = copied(other)
        for seed in range(80):  # until a draw begins with the relay that is away
            other.store = store
            away = net.relays[0]
            if away.is_up:
                await away.stop()
            await other.stop()
            await other.start()
            began = trio.current_time()
            ear = await other.listen()
            if hosts_of(net, other)[0] is away:
                assert trio.current_time() - began < 300
                assert in_use(net, other) is not away
                await drop_everywhere(net, b"x")
                assert await ear.hears(1) == [b"x"]
                return
            assert seed < 79
            await other.daemon.service.unsubscribe(ONE)


async def test_a_host_that_lost_its_disk_is_asked_to_hold_again() -> None:
    async with small_network() as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        host = in_use(net, subscriber)
        for number in range(2):
            await subscriber.restart()
            ear = await subscriber.listen()
            assert ear.feed.lost() == 0
            await host.stop()
            lose_disk(host)
            await host.start()
            await until(
                lambda: (
                    host.daemon.overlay.relay is not None and len(host.daemon.overlay.relay.leases.book) == 1
                ),
                3 * EPOCH_SECONDS,
            )
            assert ear.feed.lost() is None, "something may have waited there"
            assert ear.feed.lost() == 0
            before = len(ear.heard)
            await drop_everywhere(net, *(b"%d %d" % (number, n) for n in range(5)))
            await ear.hears(before + 5)


async def test_the_owner_attaches_at_a_moment_of_its_own_after_a_start() -> None:
    async with small_network(epoch=LONG) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        opened = net.count("parcels_opened")
        delays = []
        for _ in range(12):
            await subscriber.restart()
            began = trio.current_time()
            await until(lambda: box_of(subscriber).is_there, 30)
            delays.append(trio.current_time() - began)
        assert max(delays) < NEWEST.attach_within + 2
        assert max(delays) - min(delays) > NEWEST.attach_within / 3
        assert net.count("parcels_opened") == opened, "nobody had to be told again"


async def test_two_daemons_with_one_box_take_turns() -> None:
    """As where a backup was restored while the daemon goes on: none of both asks without pause."""
    async with small_network(epoch=LONG) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        twin = net.add("twin", False, copied(subscriber))
        await twin.start()
        other = await twin.listen()
        await trio.sleep(600)
        opened = net.count("links_opened")
        sent = [b"%d" % number for number in range(20)]
        for payload in sent:
            await drop_everywhere(net, payload)
            await trio.sleep(60)
        await trio.sleep(600)
        assert {*ear.payloads, *other.payloads} == {*sent}
        links = net.count("links_opened") - opened - len(sent)
        assert links < 200, f"{links} links in half an hour"


@pytest.mark.slow
async def test_a_thousand_messages_that_waited_come_at_once() -> None:
    async with small_network(epoch=LONG, relays=3) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        await subscriber.stop()
        sent = [b"%d" % number for number in range(1000)]
        await drop_everywhere(net, *sent)
        await trio.sleep(60)
        await subscriber.start()
        ear = await subscriber.listen()
        await until(lambda: box_of(subscriber).is_there, 30)
        began = trio.current_time()
        assert sorted(await ear.hears(1000)) == sorted(sent)
        assert trio.current_time() - began < 20


async def test_what_gave_way_at_the_host_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_shares, "MAX_BOX", 5000)  # four of the smallest messages
    async with small_network(epoch=LONG) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        await subscriber.stop()
        await drop_everywhere(net, *(b"%d" % number for number in range(10)))
        await trio.sleep(30)
        await subscriber.start()
        await until(lambda: box_of(subscriber).is_there, 30)
        assert subscriber.count("messages_lost_hosts") == 6
        await subscriber.restart()
        ear = await subscriber.listen()
        await ear.hears(4)
        assert ear.feed.lost() == 6
        assert (await subscriber.listen()).feed.lost() == 0
        await subscriber.restart()
        assert (await subscriber.listen()).feed.lost() == 0
        assert subscriber.count("messages_lost_hosts") == 6


@pytest.mark.slow
async def test_who_was_away_over_midnight_gets_what_came_before() -> None:
    async with small_network(later=16) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        first = net.calendar.day(net.now)
        midnight = net.calendar.day_start(first + 1)
        await net.sleep_until(midnight - 2 * EPOCH_SECONDS)
        await subscriber.stop()
        before, after = ([b"%s %d" % (when, n) for n in range(5)] for when in (b"before", b"after"))
        await drop_everywhere(net, *before)
        await net.sleep_until(midnight + EPOCH_SECONDS)
        await drop_everywhere(net, *after)
        await net.sleep_until(midnight + DAY_SECONDS - 3 * EPOCH_SECONDS)
        await subscriber.start()
        ear = await subscriber.listen()
        assert sorted(await ear.hears(10)) == sorted([*before, *after])
        await subscriber.restart()
        ear = await subscriber.listen()
        await trio.sleep(EPOCH_SECONDS)
        assert ear.payloads == []
        assert subscriber.count("refused_day") == 0


async def test_boxes_of_one_subscriber_share_nothing() -> None:
    async with small_network(relays=3) as net:
        subscriber = net.clients[0]
        for topic in (ONE, TWO):
            await subscriber.listen(topic)
        one, two = box_of(subscriber, ONE), box_of(subscriber, TWO)
        assert one.seed != two.seed
        (first,), (second,) = (subscriber.route(topic).planned.values() for topic in (ONE, TWO))
        assert first.installation.secret != second.installation.secret
        assert first.installation.trunk != second.installation.trunk
        assert set(first.installation.entries).isdisjoint(second.installation.entries)


async def test_a_host_hears_of_nothing_that_is_not_on_disk() -> None:
    async with small_network(relays=3) as net:
        subscriber = net.clients[0]
        disk = subscriber.store = Disk(subscriber.store)
        await subscriber.restart()
        await subscribed(subscriber)
        disk.hang()
        await drop_everywhere(net, b"x")
        await trio.sleep(5)
        await subscriber.stop()
        disk.lose()
        await subscriber.start()
        ear = await subscriber.listen()
        assert await ear.hears(1) == [b"x"]
        await trio.sleep(EPOCH_SECONDS)
        assert ear.payloads == [b"x"]


async def test_where_one_relay_is_all_it_keeps_the_box() -> None:
    async with small_network(relays=1) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        assert ear.feed.nodes == 1
        await publisher.daemon.service.publish(ONE, Content(b"a"))
        assert await ear.hears(1) == [b"a"]
        ear.close()
        await subscriber.stop()
        await publisher.daemon.service.publish(ONE, Content(b"b"))
        await net.relays[0].restart()
        await subscriber.start()
        ear = await subscriber.listen()
        assert await ear.hears(1) == [b"b"]
        newcomer = net.add("relay-1", is_relay=True)
        net.relays.append(newcomer)
        await newcomer.start()
        await until(
            lambda: ear.feed.nodes == 1 and len(box_of(subscriber).hosts.relays) == 2, 24 * EPOCH_SECONDS
        )
        for number, relay in enumerate(net.relays):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
        assert sorted(await ear.hears(3)) == [b"0", b"1", b"b"]


async def test_after_unsubscribing_the_host_has_forgotten_and_relays_are_told_through_it() -> None:
    async with small_network(relays=6) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        host, box = in_use(net, subscriber), box_of(subscriber).key
        assert await subscriber.daemon.service.unsubscribe(ONE)
        assert host.daemon.overlay.relay is not None
        kept = host.daemon.overlay.relay.boxes._kept[box]
        await until(lambda: kept.is_closed, 10)
        book = host.daemon.overlay.relay.leases.book
        assert len(book.held_for(box_hop(box))) == 1, "it stays until its day lapses"
        assert set(net.leases().values()) == {0}
        await drop_everywhere(net, b"after")
        await trio.sleep(2 * EPOCH_SECONDS)
        assert await subscriber.store.scan("owned-box") == []
        assert len(host.daemon.overlay.relay.box_links) == 0


async def test_what_ends_while_the_host_is_away_is_withdrawn_directly_and_the_host_hears_later() -> None:
    async with small_network(relays=6) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        host, box = in_use(net, subscriber), box_of(subscriber).key
        await host.stop()
        assert await subscriber.daemon.service.unsubscribe(ONE)
        assert set(net.leases().values()) == {0}
        await subscriber.restart()
        await host.start()
        assert host.daemon.overlay.relay is not None
        await until(lambda: host.daemon.overlay.relay.boxes._kept[box].is_closed, 3 * EPOCH_SECONDS)  # type: ignore[union-attr]
        for _ in range(10):
            await trio.sleep(EPOCH_SECONDS / 2)
            if not await subscriber.store.scan("owned-box"):
                return
        raise AssertionError("its record is there still")
