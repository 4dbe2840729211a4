"""What a reader under cover lacks when its host, its porter or itself is away: it comes, or it is told."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from covered_network import CoveredNode, covered_authors
from lettered_network import EPOCH, ROUND
from reader_scene import DAY, HEARD_WITHIN, LANE_WITHIN, published, told
from small_network import Ear, Node, SmallNetwork, until

from hushcast_protocol.cover import cover_chain

pytestmark = pytest.mark.slow

RELAYS = 14  # cover needs twelve, and one is away for long


async def a_lane(net: SmallNetwork, reader: CoveredNode) -> int:
    """Wait until all relays but the host were told, a lane brings blocks, and the next day is alone."""
    await until(lambda: told(reader)["nodes"] == RELAYS - 1, 40 * ROUND, "all were told")
    await until(lambda: "; " not in told(reader)["outlook"], LANE_WITHIN, "its lane is there")
    day = net.calendar.day(net.now) + 1
    await net.sleep_until(net.calendar.lapse(day - 1) + 2 * ROUND)
    return day


def host_of(net: SmallNetwork, reader: CoveredNode) -> Node:
    """The host of the lane that brings its first subscription."""
    held: Any = reader.rounds._reader
    (route,) = held.routes._routes.values()
    return net.relay(reader.lanes[route.lane].host.relay)


async def is_told_once(reader: CoveredNode, ear: Ear, within: float) -> Ear:
    """An application hears that messages are lost, nobody knows how many; and not again after a restart."""
    await until(lambda: ear.feed.lost() is None, within, "it is told that messages may lack")
    await trio.sleep(6 * ROUND)
    assert ear.feed.lost() == 0
    await reader.restart()
    ear = await reader.reading()
    await trio.sleep(6 * ROUND)
    assert ear.feed.lost() == 0
    return ear


async def test_what_comes_while_the_host_is_away_comes_when_it_is_back() -> None:
    async with covered_authors(1, reads=True, relays=RELAYS) as (net, (reader,)):
        ear = await reader.reading()
        day = await a_lane(net, reader)
        host = host_of(net, reader)
        await host.stop()
        sent = [b"%d" % number for number in range(6)]
        for payload in sent:
            await published(net, payload)
            await trio.sleep(ROUND / 2)
        await trio.sleep(DAY / 4)
        assert not ear.heard
        await host.start()
        assert sorted(await ear.hears(len(sent), HEARD_WITHIN)) == sent
        await net.sleep_until(net.calendar.lapse(day) + 6 * ROUND)
        assert ear.feed.lost() == 0
        assert sorted(ear.payloads) == sent, "nothing comes twice"


async def test_what_lapsed_while_the_host_was_away_is_told_once_and_the_next_day_is_heard() -> None:
    async with covered_authors(1, reads=True, relays=RELAYS) as (net, (reader,)):
        ear = await reader.reading()
        day = await a_lane(net, reader)
        await net.sleep_until(net.calendar.day_start(day + 1) - 4 * ROUND)
        host = host_of(net, reader)
        await host.stop()
        await published(net, b"lapses")
        await net.sleep_until(net.calendar.lapse(day) + 2 * ROUND)
        await published(net, b"waits")
        await trio.sleep(ROUND)
        await host.start()
        assert await ear.hears(1, HEARD_WITHIN) == [b"waits"]
        ear = await is_told_once(reader, ear, ROUND)
        await published(net, b"heard")
        assert await ear.hears(1, HEARD_WITHIN) == [b"heard"]


async def test_a_reader_that_was_away_for_more_than_a_day_is_told_once_and_hears_what_came_before() -> None:
    async with covered_authors(1, reads=True, relays=RELAYS) as (net, (reader,)):
        await reader.reading()
        day = await a_lane(net, reader)
        await reader.stop()
        await published(net, b"on the day it left")
        await net.sleep_until(net.calendar.day_start(day + 1) + 6 * EPOCH)
        await published(net, b"on the next")
        await net.sleep_until(net.calendar.day_start(day + 2) + ROUND)
        await reader.start()
        ear = await reader.reading()
        heard = await ear.hears(1, HEARD_WITHIN)
        assert heard[0] == b"on the day it left"
        # A letter of the next day's tree may have been under way: then that one has come as well.
        assert heard[1:] in ([], [b"on the next"])
        ear = await is_told_once(reader, ear, 4 * ROUND)
        await until(lambda: told(reader)["ready"], DAY, "today's relays were told")
        await published(net, b"now")
        assert await ear.hears(1, HEARD_WITHIN) == [b"now"]


async def test_a_reader_changes_its_porter_and_goes_on_hearing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover_chain, "CHANGED_AFTER", DAY // 2)
    monkeypatch.setattr(cover_chain, "PORTER_AWAY", DAY)
    async with covered_authors(1, reads=True, relays=RELAYS) as (net, (reader,)):
        ear = await reader.reading()
        await a_lane(net, reader)
        await published(net, b"before")
        await ear.hears(1, HEARD_WITHIN)
        porter = net.relay(reader.chain.porter)
        await porter.stop()
        await published(net, b"meanwhile")
        await until(lambda: reader.chain.porter != porter.id, 28 * EPOCH, "another porter is drawn")
        await until(lambda: reader.told["begins_in"] == 0, DAY, "it passes letters")
        await until(lambda: told(reader)["ready"], DAY, "relays were told")
        await published(net, b"by the other")
        assert sorted(await ear.hears(3, 2 * DAY)) == [b"before", b"by the other", b"meanwhile"]
        assert ear.feed.lost() is None, "the day between had no tree"
