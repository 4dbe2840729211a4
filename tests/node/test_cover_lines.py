"""Who watches the line of a daemon under cover: a round with messages is a round without, to the byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from covered_network import CoveredNode, covered_network, directories
from lettered_network import ROUND
from small_network import ONE, TWO, SmallNetwork, until

from hushcast_overlay.routes.cover.cover_rounds import CoverRounds
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.cover import topic_rounds
from hushcast_protocol.overlay.frame_directions import decode_receipt
from hushcast_runtime.environment import Environment
from hushcast_testnet.cover.covered_network import LetterSight
from hushcast_testnet.cover.line_watcher import told_apart

ROUNDS = 16  # idle, and as many that publish
WAKES = 8  # rounds; in three of them are errands to the hosts of lanes
READING = 12  # idle, as many that subscribe, and that hear much: within a day of 48


@pytest.fixture(autouse=True)
def _each_round_is_a_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that who publishes has messages in each round that is looked at."""
    monkeypatch.setattr(topic_rounds, "TOPIC_EVERY", 1)


async def sights(net: SmallNetwork, author: CoveredNode, rounds: int) -> list[LetterSight]:
    """What is seen of some rounds at an author's line, the directory's part left out: it is of no round."""
    phase = author.rounds._phase
    begin = (net.now // ROUND + 1) * ROUND + phase - ROUND / 2
    await net.sleep_until(begin + rounds * ROUND)
    relays = {net.directory_entry(node) for node in net.relays}
    found = []
    for one in author.line.between(begin, begin + rounds * ROUND):
        if one.to in relays:
            number = int((one.at - begin) // ROUND)
            # What comes back takes as long as a way through the network does: of that the sizes count.
            after = round(one.at - begin - number * ROUND - ROUND / 2, 6) if one.sent else 0.0
            found.append(LetterSight(number, after, one.sent or one.received))
    return found


async def publishing(net: SmallNetwork, author: CoveredNode) -> None:
    """Publish at any moment, some just before letters are sealed, or while they wait."""
    while True:
        await author.publish(b"m" * net.env.below(1000))
        await trio.sleep(net.env.uniform(0.0, ROUND / 2))


async def publishing_rounds(net: SmallNetwork, author: CoveredNode) -> list[LetterSight]:
    """What is seen of rounds in which the daemon publishes."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(publishing, net, author)
        busy = await sights(net, author, ROUNDS)
        nursery.cancel_scope.cancel()
    assert author.told["waiting"] > 0
    return busy


def sums(seen: list[LetterSight]) -> set[tuple[int, int]]:
    """The bytes of each round, sent and received together, and how many writes at its moment."""
    rounds = {one.round for one in seen}
    return {
        (
            sum(one.size for one in seen if one.round == number),
            sum(one.at == 0.0 and one.size > 4 * 4096 for one in seen if one.round == number),
        )
        for number in rounds
    }


async def bursts(net: SmallNetwork) -> None:
    """Publish without cover what a reader wants, much at a time."""
    while True:
        for _ in range(5):
            await net.clients[0].daemon.service.enqueue(ONE, Content(b"b" * net.env.below(1000)))
        await trio.sleep(net.env.uniform(0.0, ROUND))


async def while_it_goes(
    net: SmallNetwork, reader: CoveredNode, rounds: int, busy: Callable[[], Awaitable[object]]
) -> list[LetterSight]:
    """What is seen of rounds in which something goes on."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(busy)
        seen = await sights(net, reader, rounds)
        nursery.cancel_scope.cancel()
    return seen


async def at_a_days_begin(net: SmallNetwork) -> None:
    """Wait for a day: bills go with its first round, whatever else goes on."""
    day = net.calendar.day(net.now) + 1
    await net.sleep_until(net.calendar.day_start(day) + 2 * ROUND)


async def woken(author: CoveredNode, monkeypatch: pytest.MonkeyPatch) -> int:
    """In how many of some rounds an author wakes less than a tenth of a second before its moment."""
    sleep_until, asked = Environment.sleep_until, list[float]()

    async def slept(env: Any, moment: float) -> None:
        if env is author.rounds._env:
            asked.append(moment)
        await sleep_until(env, moment)

    with monkeypatch.context() as patch:
        patch.setattr(Environment, "sleep_until", slept)
        await trio.sleep(WAKES * ROUND)
    return sum(0 < round((author.rounds._phase - moment) % ROUND, 3) < 0.1 for moment in asked)


@pytest.mark.slow
async def test_a_round_that_publishes_is_a_round_that_does_not_and_planted_faults_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: letters with a message go 30 ms later; or a relay is asked something after them."""
    hand_in, fault = CoverRounds._hand_in, ""

    async def handed_in(rounds: Any, number: int, prepared: Any) -> None:
        has_message = any(planned.key is not None for planned, _ in prepared)
        await trio.sleep(0.03 * (has_message and fault == "later"))
        await hand_in(rounds, number, prepared)
        if has_message and fault == "asks":
            asked = rounds._roster().relays[rounds._chain.held.chain.second]
            channel = await rounds._link._connector.unnamed(asked.id, asked.address, decode_receipt)
            await channel.aclose()

    async with covered_network() as (net, author):
        assert await woken(author, monkeypatch) >= WAKES - 1, (
            "not from a long sleep, whatever is in its letters"
        )
        day = net.calendar.day(net.now) + 1
        await net.sleep_until(
            net.calendar.day_start(day) + 2 * ROUND
        )  # bills go with the first round of a day
        idle = await sights(net, author, ROUNDS)
        busy = await publishing_rounds(net, author)
        assert {one.round for one in idle} == {one.round for one in busy} == set(range(ROUNDS))
        assert len(sums(idle) | sums(busy)) == 1
        assert {one.at for one in [*idle, *busy]} == {0.0}
        assert told_apart(idle, busy) == 0.5
        assert author.told["missed"] == 0
        monkeypatch.setattr(CoverRounds, "_hand_in", handed_in)
        for fault in ("later", "asks"):
            assert told_apart(idle, await publishing_rounds(net, author)) > 0.75, fault


@pytest.mark.slow
async def test_a_round_that_subscribes_or_reads_is_a_round_that_does_neither() -> None:
    """Planted: who subscribes asks the host of a lane something."""
    async with covered_network(reads=True) as (net, reader):

        async def subscribes() -> None:
            await reader.reading()
            await trio.sleep_forever()

        async def asks() -> None:
            await reader.reading(TWO)
            host = reader.rounds._roster().relays[reader.lanes[0].host.relay]
            while True:
                channel = await reader.rounds._link._connector.unnamed(host.id, host.address, decode_receipt)
                await channel.aclose()
                await trio.sleep(ROUND)

        await at_a_days_begin(net)
        idle = await sights(net, reader, READING)
        subscribed = await while_it_goes(net, reader, READING, subscribes)
        assert told_apart(idle, subscribed) == 0.5
        assert len(sums(idle) | sums(subscribed)) == 1
        await until(lambda: reader.told["lanes_silent"][0] == 0, 60 * ROUND, "its lane is there")
        await at_a_days_begin(net)
        ear = await reader.reading()
        burst = await while_it_goes(net, reader, READING, lambda: bursts(net))
        assert len(ear.heard) > 5
        assert told_apart(idle, burst) == 0.5
        assert sums(burst) == sums(idle)
        opened = reader.line.opened_at()
        assert opened.pop(net.directory_entry(net.relay(reader.chain.porter))) == 1
        assert {str(to) for to in opened} == directories(net)
        assert told_apart(idle, await while_it_goes(net, reader, READING, asks)) > 0.75
