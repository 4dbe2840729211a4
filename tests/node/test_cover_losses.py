"""Messages under cover where letters are lost, relays lose all, and the author is killed: none is lost."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from covered_network import CoveredNode, covered_authors, covered_network
from late_disk import LateDisk
from lettered_network import EPOCH, ROUND, desks_of
from small_network import SmallNetwork

from hushcast_local.inbox_records import PART
from hushcast_protocol.cover import loss_judge, topic_rounds
from hushcast_protocol.cover.letter_second import LetterSecond

HELD = 10  # of two hundred messages
KILLS = 24
LARGE = 64 * 1024  # bytes: 65 parts


@pytest.fixture(autouse=True)
def _each_round_is_a_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is losses that are looked at, and not how long a message waits for a round of its topic."""
    monkeypatch.setattr(topic_rounds, "TOPIC_EVERY", 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("authors", "each"), [(1, 200), pytest.param(40, 250, marks=pytest.mark.soak, id="10000 messages")]
)
async def test_all_messages_arrive_once_though_one_letter_of_a_hundred_is_lost(
    authors: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with covered_authors(authors, epoch=2 * EPOCH) as (net, writing):
        ear = await net.clients[0].listen()
        take, lost = LetterSecond.take, []

        def lossy(second: Any, *args: Any) -> None:
            if net.env.below(100) == 0:
                lost.append(args)
            else:
                take(second, *args)

        monkeypatch.setattr(LetterSecond, "take", lossy)
        sent = [b"%d" % number for number in range(authors * each)]
        for number, payload in enumerate(sent):
            await writing[number % authors].publish(payload, next_round=number >= HELD * authors)
        assert {author.told["held"] for author in writing} == {HELD}
        await trio.sleep(12 * ROUND)
        assert len(ear.heard) < 40 * authors, "three go in a round, and most held ones later"
        for author in writing:
            await author.all_listed(130 * ROUND)
        assert lost
        assert sorted(await ear.hears(len(sent), 2 * ROUND)) == sorted(sent)
        assert {author.told["waiting"] for author in writing} == {0}


def losing(net: SmallNetwork, writing: list[CoveredNode], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a fifth of the relays lose all letters: one author's second, another's third, one's porter."""
    one, other, last = (author.chain for author in writing[:3])
    chosen = {net.relay(relay) for relay in (one.second, other.third, last.porter)}
    others = [node for node in net.relays if node not in chosen]
    chosen.update(net.env.sample(others, len(net.relays) // 5 - len(chosen)))
    for desks in map(desks_of, chosen):
        monkeypatch.setattr(desks.porter.places, "hand_in", lambda *_: None)
        for desk in (desks.second, desks.third):
            if desk is not None:
                monkeypatch.setattr(desk, "take", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("authors", "each"), [(3, 4), pytest.param(60, 20, marks=pytest.mark.soak, id="1200 messages")]
)
async def test_where_a_fifth_of_the_relays_lose_all_letters_each_message_is_heard_or_its_author_told(
    authors: int, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with covered_authors(authors, epoch=ROUND, relays=15) as (net, writing):
        ear = await net.clients[0].listen()
        losing(net, writing, monkeypatch)
        monkeypatch.setattr(loss_judge, "ALARM", 1e9)  # another chain would have it go on for longer
        sent = {}
        for number in range(authors * each):
            sent[b"%d" % number] = (await writing[number % authors].publish(b"%d" % number)).hex()
        await trio.sleep(20 * ROUND)
        assert {one["state"] for one in writing[0].daemon.service.outbox()} == {"waiting"}
        await trio.sleep(14 * ROUND)
        assert len(ear.heard) == len(set(ear.payloads)), "nothing comes twice"
        told = [one for author in writing for one in author.daemon.service.outbox()]
        unheard = {name for payload, name in sent.items() if payload not in ear.payloads}
        print(f"of {len(sent)} {len(unheard)} were not heard, and {len(told)} given up")
        assert len(unheard) >= 3 * each
        assert {one["id"] for one in told} >= unheard
        assert {one["state"] for one in told} == {"given up"}
        assert all("publish it again" in one["reason"] for one in told)
        assert sum(author.count("publications_given_up") for author in writing) == len(told)
        assert {author.told["waiting"] for author in writing} == {0}


@pytest.mark.slow
async def test_an_author_that_is_killed_neither_loses_nor_doubles_messages_or_parts() -> None:
    async with covered_network() as (net, author):
        reader = net.clients[0]
        ear = await reader.listen()
        await author.stop()
        author.store = LateDisk(author.store, net.env)
        await author.start()
        sent = [b"l" * LARGE]
        await author.publish(sent[0])
        (large,) = author.daemon.service.outbox()
        assert "its 65 parts go within 22 minutes" in large["reason"]
        early: list[bytes] = []
        for number in range(KILLS):
            sent.append(b"%d" % number)
            await author.publish(sent[-1])
            if number % 8 == 4:
                early += ear.payloads
                ear.close()
                await reader.restart()
                ear = await reader.listen()
            await trio.sleep(net.env.uniform(0.0, 1.5 * ROUND))
            await author.stop()
            await trio.sleep(net.env.uniform(0.0, 10.0))
            await author.start()
        await author.all_listed(48 * ROUND)
        await trio.sleep(6 * ROUND)
        assert sorted(early + ear.payloads) == sorted(sent)
        assert not await reader.store.scan(PART)
        assert not await author.store.scan("covered-message")  # type: ignore[arg-type]
        rounds = [one.at // ROUND for one in author.line.seen if one.sent > 4 * 4096]
        assert len(rounds) == len(set(rounds)), "a round has one set of letters, whenever its daemon starts"
