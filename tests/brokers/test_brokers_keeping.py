"""What the root keeps: who asks without a name is shown a day, and what a root says is judged."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from broker_daemons import tree_of_daemons
from days_published import cursor, publish_for
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, until
from small_tree import OTHER_KEY, Member, SmallTree, small_tree

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.frames import AskPast, Forward, Receipt
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection

ROWS = (("inner", "inner", "root"), ("edge 1", "edge", "inner"), ("edge 2", "edge", "inner"))
WITHIN = 2 * DAY_SECONDS


async def page(
    network: SmallTree, day: int, word: bytes, after: bytes | None = None, to: Member | None = None
) -> tuple[list[Message], str]:
    """Ask for some of what is kept, over a connection of its own; return it, and the verdict."""
    talk = await network.connect(to or network.root)
    await talk.say(AskPast(day, word, after, None))
    found = []
    while isinstance(frame := await talk.hear(), Forward):
        found.append(frame.message)
    await talk.close()
    assert isinstance(frame, Receipt), frame
    return found, frame.verdict


async def test_who_asks_is_shown_all_of_a_day_in_pages_and_no_other() -> None:
    async with small_tree(ROWS) as network:
        sent = [await network.published(size=3) for _ in range(20)]
        day, word = sent[0].day, sent[0].tokens[0]
        first, verdict = await page(network, day, word)
        assert verdict == "accepted"
        assert 0 < len(first) < 20
        found, after = list(first), first[-1].id
        while (some := await page(network, day, word, after))[0]:
            found += some[0]
            after = found[-1].id
        assert [one.id for one in found] == sorted(one.id for one in sent)
        await network.root.restart()
        assert (await page(network, day, word))[0] == first
        assert await page(network, day, bytes(16)) == ([], "accepted")
        assert await page(network, day + 2, word) == ([], "day")
        assert await page(network, day - 15, word) == ([], "day")
        assert await page(network, day, word, to=network["edge 1"]) == ([], "unknown")


async def test_days_go_with_their_time_and_with_the_setting_which_the_tree_announces() -> None:
    async with small_tree(ROWS) as network:
        assert network["edge 1"].daemon.tree.days_kept == 14
        network.root_keeps = KeepingSection(days=1)
        await network.root.restart()
        await network.linked()
        message = await network.published()
        await until(lambda: network["edge 1"].daemon.tree.days_kept == 1)
        await trio.sleep(DAY_SECONDS)
        assert (await page(network, message.day, message.tokens[0]))[0] == [message]
        await trio.sleep(DAY_SECONDS)
        assert network.root.status("kept_bytes") == 0
        network.root_keeps = NOTHING
        await network.root.restart()
        message = await network.published()
        assert await page(network, message.day, message.tokens[0]) == ([], "unknown")


@pytest.mark.slow
async def test_killed_while_it_brings_three_days_all_comes_once() -> None:
    async with tree_of_daemons(rows=ROWS) as network:
        here, there = network.nodes
        await here.listen()
        await here.stop()
        await publish_for(there, 3, 4)
        await here.start()
        for number in range(12):
            await trio.sleep(network.env.uniform(0.0, 25.0))
            await [network.root, here][number % 2].restart()
        await until(lambda: cursor(here) == 12, WITHIN, "all came")
        await until(lambda: here.count("past_days_brought") >= 3, WITHIN, "and all days are done with")
        await trio.sleep(DAY_SECONDS)
        assert cursor(here) == 12, "and none twice"


async def test_who_hides_does_not_ask_for_what_was() -> None:
    async with tree_of_daemons(rows=(("edge", "edge", "root"),)) as network:
        here, there = network.nodes
        interest = Interest(ONE, parse_where("", ONE.attributes))
        hidden = {"k": 2, "condition": "source", "otherwise": "wait"}
        with pytest.raises(Refusal, match="leave `since` or `--k` away"):
            await here.daemon.service.subscribe(interest, terms=hidden, past=network.now)
        with trio.fail_after(WITHIN):
            async with trio.open_nursery() as nursery:
                for node in network.nodes:
                    nursery.start_soon(partial(node.listen, terms=hidden))
        await here.stop()
        await publish_for(there, 2, 1)
        await here.start()
        await trio.sleep(DAY_SECONDS / 2)
        assert network.root.count("kept_asked_for") == 0


class Root:
    """A root that answers as it likes."""

    def __init__(self, *frames: Any) -> None:
        self._frames = list(frames)

    async def send(self, *frames: Any) -> None:
        await trio.lowlevel.checkpoint()

    async def one(self, within: float) -> Any:
        await trio.lowlevel.checkpoint()
        return self._frames.pop(0)


async def test_a_root_that_shows_what_nobody_asked_for_is_not_believed() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        questions: Any = network.nodes[0].daemon.brokers.routes._questions
        one, other = sorted([network.message() for _ in range(2)], key=lambda message: message.id)
        day, word, done = one.day, one.tokens[0], Receipt("accepted", 0)
        asked = AskPast(day, word, None, None)
        found, _ = await questions._answer(
            Root(Forward(one), Forward(other), done), AskPast(day, word, None, None)
        )
        assert found == [one, other]
        for frames in (
            [Forward(other), Forward(one)],
            [Forward(one), Forward(one)],
            [Forward(network.message(day=day - 1))],
            [Forward(network.message(key=OTHER_KEY))],
        ):
            with pytest.raises(Exception, match="nobody asked for"):
                await questions._answer(Root(*frames, done), asked)
        with pytest.raises(Exception, match="nobody asked for"):
            await questions._answer(Root(Forward(one), done), AskPast(day, word, one.id, None))
        await trio.sleep(EPOCH_SECONDS)
