"""Boxes on days that are cut into shards: hosts stay, in or out of the shard that their box's tree spans."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from cut_network import CutNetwork, cut_network
from hosted_network import box_of, hosts_of, in_use, subscribed
from small_network import EPOCH_SECONDS, ONE, Ear, Node, until

from hushcast_overlay.routes.route import LATEST_RENEWAL
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.overlay import host_list
from hushcast_protocol.overlay.hops import host_hop

pytestmark = pytest.mark.slow
EPOCH = EPOCH_SECONDS
LATER = 14  # epochs: what is looked at comes with the days after the first


@asynccontextmanager
async def hosted_and_cut(**others: Any) -> AsyncIterator[CutNetwork]:
    async with cut_network(**{"later": LATER} | others) as net:
        yield net


def tree(node: Node, day: int) -> set[bytes]:
    """The relays of a day's tree."""
    (planned,) = node.route().on(day)
    return set(planned.installation.tree.parents)


async def is_of_the_shard(node: Node, day: int) -> bool:
    """Tell whether the host in use is of the shard that a day's tree spans."""
    overlay, (planned,) = node.daemon.overlay, node.route().on(day)
    near = await overlay.shards.find(day, planned.installation.trunk, planned.installation.copy)
    return near.relay(box_of(node).hosts.current) is not None


async def renewed(net: CutNetwork, node: Node) -> None:
    """Wait until tomorrow is installed, too."""
    tomorrow = net.today + 1
    await net.sleep_until(net.midnight() - (LATEST_RENEWAL + 1 / 24) * net.calendar.day_seconds)
    route = node.route()
    await until(
        lambda: route.on(tomorrow) and not route.on(tomorrow)[0].unconfirmed, 4 * EPOCH, "tomorrow is there"
    )


async def each_once(ear: Ear, sent: list[bytes]) -> None:
    await ear.hears(len(sent))
    await trio.sleep(EPOCH)
    assert sorted(ear.payloads) == sorted(sent)


async def out_of_the_shard(net: CutNetwork, node: Node) -> None:
    """Wait for a day on which the host is of another shard than the topic."""
    for _ in range(8):
        await until(lambda: node.route().on(net.today), EPOCH)
        if not await is_of_the_shard(node, net.today):
            return
        await net.sleep_until(net.midnight() + 1)
    raise AssertionError("the host was of the topic's shard on eight days")


async def test_nothing_is_lost_or_doubled_over_changes_of_day_and_the_host_stays() -> None:
    async with hosted_and_cut(seed=2) as net:
        subscriber, publisher = net.clients
        first = net.today
        assert net.is_cut(first)
        ear = await subscriber.listen()
        hosts = box_of(subscriber).hosts.relays
        sent: list[bytes] = []
        was_in, shards = set(), set()
        for _ in range(3):
            sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher)
            was_in.add(await is_of_the_shard(subscriber, net.today))
            shards.add(frozenset(tree(subscriber, net.today)))
            assert in_use(net, subscriber).id not in tree(subscriber, net.today)
            assert len(net.wires.listeners) == 1 + len(net.relays), "directory and relays"
        await each_once(ear, sent)
        assert was_in == {True, False}, "the host was of the topic's shard on some days, and not on others"
        assert len(shards) > 1
        assert box_of(subscriber).hosts.relays == hosts
        for counter in ("messages_expired", "refused_day", "roster_mismatches", "messages_without_box"):
            assert net.count(counter) == 0
        assert net.count("refused_form") == 0


async def test_an_owner_that_restarts_finds_a_host_that_no_roster_lists() -> None:
    async with hosted_and_cut() as net:
        subscriber, publisher = net.clients
        await subscribed(subscriber)
        await out_of_the_shard(net, subscriber)
        host, box = in_use(net, subscriber), box_of(subscriber).key
        assert subscriber.daemon.overlay.shards.relay(host.id) is None
        (planned,) = subscriber.route().on(net.today)
        relays = [net.relay(top).daemon.overlay.relay for top in planned.installation.tree.children[None]]
        hop = host_hop(host.id)
        await until(lambda: all(relay.peers.is_linked(hop) for relay in relays if relay), 3 * EPOCH)
        links = host.count("links_opened")
        await trio.sleep(6 * EPOCH)
        assert all(relay.peers.is_linked(hop) for relay in relays if relay)
        assert host.count("links_opened") - links < 30, "its children keep their links"
        await subscriber.stop()
        sent = await net.publish_until(net.now + EPOCH, 10, publisher)
        await subscriber.start()
        ear = await subscriber.listen()
        await each_once(ear, sent)
        await host.restart()
        sent += await net.publish_until(net.now + EPOCH, 10, publisher)
        await each_once(ear, sent)
        assert in_use(net, subscriber) is host
        assert box_of(subscriber).key == box


async def test_what_comes_while_host_or_owner_are_away_over_midnight_waits() -> None:
    async with hosted_and_cut(epoch=120) as net:
        subscriber, publisher = net.clients
        await subscribed(subscriber)
        await out_of_the_shard(net, subscriber)
        await renewed(net, subscriber)
        await net.sleep_until(net.midnight() - 2 * EPOCH)
        host = in_use(net, subscriber)
        await subscriber.stop()
        sent = await net.publish_until(net.midnight() - EPOCH / 2, 10, publisher)
        await host.stop()
        sent += await net.publish_until(net.midnight() + 1, 10, publisher)
        await host.start()  # so that all tops try again before the day has lapsed, with what waits there
        sent += await net.publish_until(net.now + EPOCH, 10, publisher)
        await subscriber.start()
        ear = await subscriber.listen()
        await each_once(ear, sent)
        assert net.count("messages_detoured") == 0


async def test_the_second_host_takes_over_and_the_first_comes_back() -> None:
    async with hosted_and_cut() as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        first, second = hosts_of(net, subscriber)
        await first.stop()
        sent = await net.publish_until(net.now + (NEWEST.away_epochs + 3) * EPOCH, 20, publisher)
        assert in_use(net, subscriber) is second
        assert second.id not in tree(subscriber, net.today)
        await first.start()
        sent += await net.publish_until(net.now + 3 * EPOCH, 20, publisher)
        await each_once(ear, sent)
        assert in_use(net, subscriber) is first


async def test_on_cut_days_a_host_is_gone_if_it_answers_on_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_list, "GONE_AFTER", 2)
    async with hosted_and_cut() as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        first, second = hosts_of(net, subscriber)
        await net.sleep_until(net.midnight(2) + EPOCH)
        assert [host.relay for host in box_of(subscriber).hosts.hosts] == [first.id, second.id]
        lacking = [host.lacking for host in box_of(subscriber).hosts.hosts]
        assert lacking == [0, 0], "who is not tried is there"
        began = net.today
        await first.stop()
        net.relays.remove(first)
        await until(lambda: box_of(subscriber).hosts.relays[0] == second.id, 3 * net.calendar.day_seconds)
        assert net.today >= began + 1
        sent = await net.publish_until(net.now + 2 * EPOCH, 20, publisher)
        await ear.hears(len(sent))


async def test_unsubscribing_ends_the_box_and_the_trees_of_both_days() -> None:
    async with hosted_and_cut() as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        await out_of_the_shard(net, subscriber)
        await renewed(net, subscriber)
        host, box = in_use(net, subscriber), box_of(subscriber).key
        ear.close()
        assert await subscriber.daemon.service.unsubscribe(ONE)
        assert host.daemon.overlay.relay is not None
        boxes = host.daemon.overlay.relay.boxes
        await until(lambda: boxes._kept[box].is_closed, EPOCH)
        leases = {name: count for name, count in net.leases().items() if name != host.name}
        assert set(leases.values()) == {0}


async def test_from_whole_days_to_cut_ones_and_back_the_box_is_one() -> None:
    async with hosted_and_cut(relays=6, later=0) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        box, first = box_of(subscriber), net.today
        hosts = box.hosts.relays
        assert not net.is_cut(first)
        sent = await net.publish_until(net.now + EPOCH, 20, publisher)
        for number in range(4):
            newcomer = net.add(f"newcomer-{number}", True)
            net.relays.append(newcomer)
            await newcomer.start()
        sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher)
        assert net.is_cut(first + 1)
        sent += await net.publish_until(net.midnight() - 8 * EPOCH, 60, publisher)
        for newcomer in net.relays[6:]:
            await newcomer.stop()
        sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher)
        sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher)
        assert not net.is_cut(first + 3)
        assert len(tree(subscriber, first + 3)) == 5
        assert box_of(subscriber) is box
        assert box.hosts.relays == hosts
        await each_once(ear, sent)
