"""Who watches the line of a daemon under cover: a round with messages is a round without, to the byte."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from covered_network import CoveredNode, covered_network
from lettered_network import ROUND
from small_network import SmallNetwork

from hushcast_overlay.routes.cover.cover_rounds import CoverRounds
from hushcast_protocol.overlay.frame_directions import decode_receipt
from hushcast_runtime.environment import Environment
from hushcast_testnet.cover.covered_network import LetterSight
from hushcast_testnet.cover.line_watcher import told_apart

ROUNDS = 16  # idle, and as many that publish


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


async def woken(author: CoveredNode, monkeypatch: pytest.MonkeyPatch) -> set[float]:
    """How many seconds before its moment of a round an author wakes."""
    sleep_until, asked = Environment.sleep_until, list[float]()

    async def slept(env: Any, moment: float) -> None:
        if env is author.rounds._env:
            asked.append(moment)
        await sleep_until(env, moment)

    with monkeypatch.context() as patch:
        patch.setattr(Environment, "sleep_until", slept)
        await trio.sleep(2 * ROUND)
    return {round((author.rounds._phase - moment) % ROUND, 3) for moment in asked}


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
        assert any(0 < ahead < 0.1 for ahead in await woken(author, monkeypatch)), "not from a long sleep"
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
