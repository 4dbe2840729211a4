"""A porter that is away, silent or lies: a daemon under cover waits, says so, and goes no other way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import trio
from covered_network import CoveredNode, covered_network
from lettered_network import EPOCH, ROUND, desks_of
from small_network import SmallNetwork, until

from hushcast_node.overlay_doctor import examine_overlay
from hushcast_overlay.relay.cover.places import Places
from hushcast_overlay.relay.cover.porter import Porter
from hushcast_overlay.relay.cover.waybill_desk import WaybillDesk
from hushcast_protocol.cover import cover_chain, loss_judge, porter_queue
from hushcast_protocol.cover.cover_frames import (
    BLOCKS_A_ROUND,
    CoverBills,
    CoverBlocks,
    CoverLetters,
    CoverPlaced,
)
from hushcast_protocol.cover.receipt_list import BLOCK

DAY = 24 * EPOCH  # seconds
MONTH = 3 * DAY // 2  # seconds that a chain stays at least, here


def elsewhere(net: SmallNetwork, author: CoveredNode) -> set[str]:
    """Whom it connected to beside the directories and its porter."""
    porter = str(net.directory_entry(net.relay(author.chain.porter)))
    known = {member.address for member in net.directory.directories().members} | {porter}
    return {str(to) for to in author.line.opened_at()} - known


@pytest.mark.slow
async def test_a_daemon_waits_for_a_porter_that_is_away_or_lies_and_goes_no_other_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer, said = Porter._answer, ""
    monkeypatch.setattr(loss_judge, "ALARM", 1e9)  # it stays, whatever it loses

    async def answered(porter: Any, place: Any, channel: Any, frame: Any) -> None:
        if not said or isinstance(frame, CoverBills):
            await answer(porter, place, channel, frame)
        elif said == "too much":
            blocks = (bytes(BLOCK),) * BLOCKS_A_ROUND
            await channel.send(*(CoverBlocks(frame.round + ahead, frame.round, blocks) for ahead in (-1, 7)))
        elif said == "another word":
            await channel.send(CoverPlaced(None, 0))
        else:
            await trio.lowlevel.checkpoint()

    async with covered_network() as (net, author):
        monkeypatch.setattr(Porter, "_answer", answered)
        for one in ("silent", "too much", "another word"):
            said = one
            before = author.line.opened_at().total()
            await trio.sleep(5 * ROUND)
            assert author.line.opened_at().total() - before >= 3, "the link is opened anew each round"
        said = "silent"
        await trio.sleep(2 * ROUND)
        assert author.told["porter"] == "away"
        said = ""
        await until(lambda: author.told["porter"] == "there", 3 * ROUND)
        porter = net.relay(author.chain.porter)
        await porter.stop()
        await author.publish(b"m")
        await until(lambda: author.told["problem"] == "the porter does not answer", 3 * ROUND)
        assert author.daemon.overlay.cover == author.told
        await trio.sleep(6 * ROUND)
        assert author.told["waiting"] == 1
        assert author.told["missed"] >= 6
        await porter.start()
        await author.all_listed(50 * ROUND)
        (place,) = desks_of(porter).porter.places
        monkeypatch.setattr(place.queue, "begins", 10 * place.queue.begins)
        await author.restart()
        await until(lambda: author.told["problem"] == "the porter puts letters off", 3 * ROUND)
        assert not elsewhere(net, author)


@pytest.mark.slow
async def test_a_porter_that_does_not_read_or_forgets_its_daemon_takes_one_round_and_no_more() -> None:
    async with covered_network() as (net, author):
        link: Any = author.rounds._link

        class Deaf:
            async def send(self, *_: Any) -> None:
                await trio.sleep_forever()

            async def aclose(self) -> None:
                await trio.lowlevel.checkpoint()

        before = link._channel
        link._channel = Deaf()
        await before.aclose()
        await until(lambda: author.told["problem"] == "the porter does not answer", 3 * ROUND)
        await until(lambda: author.told["problem"] is None, 3 * ROUND, "the link is opened anew")
        known = desks_of(net.relay(author.chain.porter)).porter.places
        (place,) = known
        known.end(place)
        await until(lambda: "asks for a stamp" in str(author.told["problem"]), 3 * ROUND)
        await until(lambda: author.told["problem"] is None, 3 * ROUND, "it pays for a place anew")
        assert len(known) == 1
        assert not elsewhere(net, author)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["keeps lists back", "puts letters off"])
async def test_a_porter_that_serves_nothing_counts_as_away_and_is_left(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cover_chain, "CHANGED_AFTER", MONTH)
    monkeypatch.setattr(porter_queue, "below", lambda *_: 1)
    async with covered_network() as (net, author):
        held = author.rounds._chain.held  # both were left for a loss just now
        before = held.chain = replace(author.chain, porter_lost=net.now - 1, pair_lost=net.now)
        porter, block = net.relay(before.porter), Places.block

        async def kept_back(places: Any, place: Any, round_: int) -> Any:
            return None if places is desks_of(porter).porter.places else await block(places, place, round_)

        if how == "keeps lists back":
            monkeypatch.setattr(Places, "block", kept_back)
        warned = False
        for step in range(24):
            if how == "puts letters off" and step % 3 == 0:
                (place,) = desks_of(porter).porter.places
                place.queue.begins = author.rounds._rules.round_at(net.now) + 44
                assert place.link is not None
                place.link.cancel()
            await trio.sleep(6 * ROUND)
            if author.chain != before:
                break
            if author.told["porter"] == "away":
                assert (
                    "no receipts come, though the porter answers: another is drawn" in author.told["problem"]
                )
                found = await examine_overlay(author.daemon.overlay, None, False, net.env)
                (told,) = [one for one in found if one.check == "cover"]
                warned = told.verdict == "warning" and "no receipts come" in told.found
        assert warned
        assert author.chain.porter != before.porter
        assert (author.chain.second, author.chain.third) == (before.second, before.third)
        await author.begun()
        await author.publish(b"m")
        await author.all_listed()
        assert author.told["problem"] is None


@pytest.mark.slow
async def test_a_porter_that_loses_letters_is_left_then_a_pair_and_until_then_no_message_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cover_chain, "CHANGED_AFTER", 2 * DAY)
    monkeypatch.setattr(loss_judge, "ALARM", 3.0)
    monkeypatch.setattr(porter_queue, "below", lambda *_: 1)
    async with covered_network() as (net, author):
        before, take = author.chain, WaybillDesk.take
        losing = {before.porter}
        monkeypatch.setattr(WaybillDesk, "take", lambda *them: None if them[2] in losing else take(*them))
        await until(lambda: author.chain != before, DAY, "another porter")
        after = author.chain
        assert after.porter != before.porter
        assert (after.second, after.third) == (before.second, before.third)
        losing.add(after.porter)
        await until(lambda: author.chain != after, 2 * DAY, "another pair")
        assert author.chain.porter == after.porter
        await until(lambda: "no message goes" in str(author.told["problem"]), 2 * DAY, "it waits")
        assert "another is drawn in 1 day" in author.told["problem"]
        found = await examine_overlay(author.daemon.overlay, None, False, net.env)
        assert [one.verdict for one in found if one.check == "cover"] == ["warning"]
        losing.clear()
        await author.restart()
        await author.publish(b"m")
        await trio.sleep(4 * ROUND)
        assert "no message goes" in author.told["problem"], "a restart does not have it forget"
        assert author.told["waiting"] == 1
        await until(lambda: author.chain.porter != after.porter, 2 * DAY, "in time")
        await author.begun()
        await author.publish(b"n")
        await until(lambda: author.told["waiting"] == 0, 40 * ROUND, "messages go again")


@pytest.mark.slow
async def test_a_porter_that_is_away_in_drawn_rounds_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_judge, "ALARM", 3.0)
    answer = Porter._answer
    async with covered_network() as (net, author):
        before = author.chain
        porter = net.relay(before.porter)

        async def answered(own: Any, place: Any, channel: Any, frame: Any) -> None:
            is_its = own is desks_of(porter).porter and isinstance(frame, CoverLetters)
            if is_its and frame.round % 3 == 0:
                await channel.aclose()
            else:
                await answer(own, place, channel, frame)

        monkeypatch.setattr(Porter, "_answer", answered)
        await until(lambda: author.chain != before, 4 * DAY, "another porter")
        assert author.chain.porter != before.porter
