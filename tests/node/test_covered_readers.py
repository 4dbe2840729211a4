"""A daemon reads under cover: what it needs goes in letters, what it hears comes in blocks."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from covered_network import CoveredNode, covered_authors, directories
from lettered_network import ROUND
from reader_scene import DAY, HEARD_WITHIN, a_lane, published, told
from small_network import ONE, TWO, until

from hushcast_node.overlay_doctor import examine_overlay
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest
from hushcast_protocol.cover.cover_presence import PRESENCE_DAYS


@pytest.mark.slow
async def test_a_reader_hears_over_restarts_a_days_turn_and_an_absence() -> None:
    async with covered_authors(2, reads=True) as (net, (reader, author)):
        ear = await reader.reading()
        assert "letters tell relays of it, within 11 minutes; then messages" in told(reader)["outlook"]
        await until(lambda: told(reader)["nodes"] == 11, 11 * 60, "all were told within what was said")
        await a_lane(reader)
        assert told(reader)["ready"]
        await published(net, b"1")
        await published(net, b"2" * 3_000)
        assert sorted(await ear.hears(2, HEARD_WITHIN)) == [b"1", b"2" * 3_000]
        await author.publish(b"3")
        await ear.hears(3, 2 * HEARD_WITHIN)
        await reader.restart()
        ear = await reader.reading()
        await published(net, b"4")
        assert (await ear.hears(1, HEARD_WITHIN)) == [b"4"]
        day = net.calendar.day(net.now)
        await net.sleep_until(net.calendar.day_start(day + 1) + ROUND)
        await published(net, b"5")
        assert (await ear.hears(2, HEARD_WITHIN))[1:] == [b"5"]
        await net.sleep_until(net.calendar.day_start(day + 1) + 0.95 * DAY)  # tomorrow's tree was told
        await reader.stop()
        await net.sleep_until(net.calendar.day_start(day + 2) + ROUND)
        await published(net, b"6")
        await net.sleep_until(net.now + 8 * ROUND)
        await reader.start()
        ear = await reader.reading()
        assert (await ear.hears(1, HEARD_WITHIN)) == [b"6"]
        await trio.sleep(4 * ROUND)
        assert len(ear.heard) == 1, "nothing comes twice"
        assert {str(to) for to in reader.line.opened_at()} <= {
            str(net.directory_entry(net.relay(reader.chain.porter))),
            *directories(net),
        }


@pytest.mark.slow
async def test_a_subscription_late_on_a_day_is_told_to_the_next_days_relays_alone() -> None:
    async with covered_authors(1, reads=True, later=9) as (net, (reader,)):
        await reader.reading()
        assert "later, as the next day begins, messages come" in told(reader)["outlook"]
        midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
        await net.sleep_until(midnight - 1)
        assert "under cover, as the next day begins in 1 second, messages" in told(reader)["outlook"]
        assert told(reader)["nodes"] == 0
        assert not told(reader)["ready"]
        await until(lambda: told(reader)["ready"], ROUND, "the day began")
        assert told(reader)["nodes"] == 11


@pytest.mark.slow
async def test_subscriptions_share_lanes_and_what_letters_do_not_ask_for_is_refused() -> None:
    async with covered_authors(1, reads=True) as (_, (reader,)):
        for topic in (ONE, TWO):
            await reader.reading(topic)
        held: Any = reader.rounds._reader
        lanes = [one.lane for one in held.routes._routes.values()]
        assert len(set(lanes)) == len(lanes) == 2
        interest = Interest(ONE, parse_where("", ()))
        with pytest.raises(Refusal, match="under cover nothing is asked for of what was published before"):
            await reader.daemon.service.subscribe(interest, past=0.0)
        assert await reader.daemon.service.unsubscribe(ONE)
        assert len(reader.daemon.service.subscriptions()) == 1


async def presence_found(reader: CoveredNode) -> list[str]:
    """What the doctor finds of it, which is what `status`, `subscriptions` and who subscribes are told."""
    found = await examine_overlay(reader.daemon.overlay, None, False, reader.network.env)
    warned = [one for one in found if one.check == "presence"]
    assert all(one.verdict == "warning" for one in warned)
    said = [f"{one.found}: {one.advice}" for one in warned]
    assert [reader.told["presence"], told(reader)["presence"]] == 2 * (said or [None])
    feed = await reader.daemon.service.subscribe(Interest(ONE, parse_where("", ())))
    assert all(one in str(feed.outlook) for one in said)
    return said


@pytest.mark.slow
async def test_who_reads_with_a_daemon_that_is_not_always_on_is_told_what_that_shows() -> None:
    async with covered_authors(1, reads=True) as (net, (reader,)):
        await reader.reading()
        (early,) = await presence_found(reader)
        assert "has not been there for 14 days on end yet" in early
        messages: Any = reader.rounds._messages
        kept, day = messages.presence._presence, net.calendar.day(net.now)
        rounds = DAY // ROUND
        for ago in range(1, PRESENCE_DAYS + 1):
            kept.restore(day - ago, rounds)
        assert await presence_found(reader) == []
        kept.restore(day - 3, rounds // 2)
        (away,) = await presence_found(reader)
        assert away.startswith("this daemon was away in more than 2 % of the rounds of the last 14 days, so ")
        assert away.endswith(": leave it on by day and night, or read with a daemon that is")
