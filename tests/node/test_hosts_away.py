"""Hosts that stay away, or are not in use: what waits there comes, or is told to be lost, once."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hosted_network import LONG, box_of, drop_everywhere, hosts_of, in_use, lose_disk, relays_know, subscribed
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, Node, SmallNetwork, small_network, until

from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content


async def told_once(subscriber: Node) -> None:
    """An application hears that messages are lost, nobody knows how many; and never again."""
    ear = await subscriber.listen()
    await until(lambda: ear.feed.lost() is None, 3 * EPOCH_SECONDS)
    for _ in range(2):
        await trio.sleep(2 * EPOCH_SECONDS)
        assert (await subscriber.listen()).feed.lost() == 0
        await subscriber.restart()


def kept_until(net: SmallNetwork, subscriber: Node, host: Node) -> float:
    """When what waits at a host is over: the end of the day after the last that it holds for."""
    return net.calendar.day_start(box_of(subscriber).at[host.id].held + 2)


@pytest.mark.slow
async def test_what_waited_at_a_host_that_stays_away_is_told_once_when_it_can_come_no_more() -> None:
    async with small_network(relays=6) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        first = in_use(net, subscriber)
        await subscriber.stop()
        await drop_everywhere(net, *(b"%d" % n for n in range(8)))
        await trio.sleep(EPOCH_SECONDS)
        await first.stop()
        await subscriber.start()
        ear = await subscriber.listen()
        over = kept_until(net, subscriber, first)
        while net.now < over - 6 * EPOCH_SECONDS:
            assert ear.feed.lost() == 0, "it may come back still"
            await trio.sleep(5 * EPOCH_SECONDS)
            await subscriber.restart()
            ear = await subscriber.listen()
        await net.sleep_until(over)
        await told_once(subscriber)
        await first.start()
        await until(lambda: in_use(net, subscriber) is first, 3 * EPOCH_SECONDS)
        await trio.sleep(2 * EPOCH_SECONDS)
        assert (await subscriber.listen()).feed.lost() == 0, "what it says now is no other loss"


@pytest.mark.slow
async def test_a_host_that_is_back_in_time_hands_over_and_nothing_is_told() -> None:
    async with small_network(relays=6, later=12) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        first = in_use(net, subscriber)
        await subscriber.stop()
        sent = [b"%d" % n for n in range(8)]
        await drop_everywhere(net, *sent)
        await trio.sleep(EPOCH_SECONDS)
        await first.stop()
        await subscriber.start()
        ear = await subscriber.listen()
        await net.sleep_until(kept_until(net, subscriber, first) - 3 * EPOCH_SECONDS)
        await first.start()
        assert sorted(await ear.hears(len(sent))) == sorted(sent)
        await trio.sleep(DAY_SECONDS)
        assert ear.feed.lost() == 0


@pytest.mark.slow
async def test_an_owner_that_comes_back_when_its_box_is_over_is_told_once() -> None:
    async with small_network(later=16) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        over = kept_until(net, subscriber, in_use(net, subscriber))
        await subscriber.stop()
        await drop_everywhere(net, b"x")
        await net.sleep_until(over + EPOCH_SECONDS)
        await subscriber.start()
        await told_once(subscriber)


@pytest.mark.slow
@pytest.mark.parametrize("is_late", [True, False])
async def test_an_owner_that_comes_back_when_the_day_it_left_on_is_over_is_told_once(is_late: bool) -> None:
    """The host holds for the next day already: what it keeps of that one still comes."""
    async with small_network() as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        host, day = in_use(net, subscriber), net.calendar.day(net.now)
        midnight = net.calendar.day_start(day + 1)
        await until(lambda: box_of(subscriber).at[host.id].confirmed == day + 1, DAY_SECONDS)
        if not is_late:
            await net.sleep_until(midnight + 2 * NEWEST.quiet_for)
        await subscriber.stop()
        await net.sleep_until(midnight + 3 * EPOCH_SECONDS)
        await drop_everywhere(net, b"x")
        await net.sleep_until(midnight + DAY_SECONDS + EPOCH_SECONDS)
        await subscriber.start()
        ear = await subscriber.listen()
        assert await ear.hears(1) == [b"x"]
        if is_late:
            await told_once(subscriber)
        else:
            assert ear.feed.lost() == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 3))])
async def test_the_second_host_is_left_when_the_first_is_back_and_asked_once_more(seed: int) -> None:
    async with small_network(relays=7, seed=seed) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        first, second = hosts_of(net, subscriber)
        await first.stop()
        await until(lambda: in_use(net, subscriber) is second, 10 * EPOCH_SECONDS)
        await relays_know(net, subscriber)
        await trio.sleep(EPOCH_SECONDS)
        await drop_everywhere(net, b"used")
        assert await ear.hears(1) == [b"used"]
        await first.start()
        await until(lambda: in_use(net, subscriber) is first, 3 * EPOCH_SECONDS)
        await relays_know(net, subscriber)
        box = box_of(subscriber)
        await until(
            lambda: box.link(second.id) is None, NEWEST.left_within * EPOCH_SECONDS + 2 * NEWEST.quiet_for + 1
        )
        known = box.at[second.id]
        closed = net.calendar.lapse(net.calendar.day(net.now))
        assert closed <= known.due <= closed + DAY_SECONDS / 2
        await subscriber.restart()
        assert box_of(subscriber).at[second.id].due == known.due
        # Who has not heard yet that the box moved sends there still, and the second keeps it.
        ear = await subscriber.listen()
        await net.drop_at(second, ONE, Content(b"late"))
        await net.sleep_until(known.due - 1)
        assert ear.payloads in ([], [b"late"])
        assert second.daemon.overlay.relay is not None
        assert len(second.daemon.overlay.relay.box_links) == 0
        closed = net.calendar.lapse(known.held)  # it may hold for the day after, too, and is asked on each
        await until(lambda: ear.payloads == [b"late"], NEWEST.quiet_for * 3)
        await net.sleep_until(max(net.now, closed + DAY_SECONDS / 2))
        await until(lambda: box_of(subscriber).at[second.id].held == -1, NEWEST.quiet_for * 3)
        assert ear.payloads == [b"late"]
        await trio.sleep(DAY_SECONDS)
        assert box_of(subscriber).link(second.id) is None
        assert ear.feed.lost() == 0


@pytest.mark.slow
async def test_what_waited_at_a_second_host_that_went_as_well_is_told_once() -> None:
    async with small_network(relays=7) as net:
        subscriber = net.clients[0]
        await subscribed(subscriber)
        first, second = hosts_of(net, subscriber)
        await first.stop()
        await until(lambda: in_use(net, subscriber) is second, 10 * EPOCH_SECONDS)
        await relays_know(net, subscriber)
        await trio.sleep(EPOCH_SECONDS)
        await subscriber.stop()
        await drop_everywhere(net, *(b"%d" % n for n in range(8)))
        await second.stop()
        lose_disk(second)
        await first.start()
        await subscriber.start()
        ear = await subscriber.listen()
        await net.sleep_until(kept_until(net, subscriber, second))
        heard = len(ear.payloads)
        assert heard < 8
        await told_once(subscriber)


async def test_a_host_that_falls_silent_is_noticed_and_one_that_is_there_is_not_left() -> None:
    async with small_network(epoch=LONG) as net:
        subscriber = net.clients[0]
        ear = await subscriber.listen()
        host = in_use(net, subscriber)
        link = box_of(subscriber).link(host.id)
        assert link is not None
        for number in range(20):  # what it brings is acknowledged, at other moments than those of its signs
            await net.drop_at(net.relays[0], ONE, Content(b"%d" % number))
            await trio.sleep(55)
        await trio.sleep(10 * NEWEST.silent_for)
        assert len(ear.payloads) == 20
        assert box_of(subscriber).link(host.id) is link
        assert host.daemon.overlay.relay is not None
        links: Any = host.daemon.overlay.relay.box_links
        links._look = lambda link: None
        await until(lambda: not link.is_open, NEWEST.silent_for + 1)
