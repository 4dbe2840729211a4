"""Messages under cover where letters are lost, relays lose all, and the author is killed: none is lost."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from covered_network import covered_network
from late_disk import LateDisk
from lettered_network import EPOCH, ROUND
from small_network import until

from hushcast_overlay.relay.cover.errand_desk import ErrandDesk
from hushcast_overlay.relay.cover.waybill_desk import WaybillDesk
from hushcast_protocol.cover.letter_second import LetterSecond

HELD = 10  # of two hundred messages
KILLS = 24


@pytest.mark.slow
async def test_two_hundred_messages_arrive_once_though_one_letter_of_a_hundred_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with covered_network(epoch=2 * EPOCH) as (net, author):
        ear = await net.clients[0].listen()
        take, lost = LetterSecond.take, []

        def lossy(second: Any, *args: Any) -> None:
            if net.env.below(100) == 0:
                lost.append(args)
            else:
                take(second, *args)

        monkeypatch.setattr(LetterSecond, "take", lossy)
        sent = [b"%d" % number for number in range(200)]
        for number, payload in enumerate(sent):
            await author.publish(payload, next_round=number >= HELD)
        assert author.told["held"] == HELD
        await trio.sleep(12 * ROUND)
        assert len(ear.heard) < 40, "three go in a round, and most held ones later"
        await author.all_listed(130 * ROUND)
        assert lost
        assert sorted(await ear.hears(200, 2 * ROUND)) == sorted(sent)
        assert author.told["waiting"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("who", [WaybillDesk, ErrandDesk])
async def test_where_a_second_or_a_third_loses_everything_the_author_is_told(
    who: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with covered_network(epoch=ROUND) as (net, author):
        monkeypatch.setattr(who, "take", lambda *_: None)
        await author.publish(b"m")
        (told,) = author.daemon.service.outbox()
        await trio.sleep(20 * ROUND)
        assert [one["state"] for one in author.daemon.service.outbox()] == ["waiting"]
        await until(lambda: author.count("publications_given_up") == 1, 10 * ROUND, "it is given up")
        (given_up,) = author.daemon.service.outbox()
        assert (given_up["id"], given_up["state"]) == (told["id"], "given up")
        assert "publish it again" in given_up["reason"]
        assert author.told["waiting"] == 0
        assert net.count("links_failed") == 0


@pytest.mark.slow
async def test_an_author_that_is_killed_neither_loses_nor_doubles() -> None:
    async with covered_network() as (net, author):
        ear = await net.clients[0].listen()
        await author.stop()
        author.store = LateDisk(author.store, net.env)
        await author.start()
        sent = []
        for number in range(KILLS):
            sent.append(b"%d" % number)
            await author.publish(sent[-1])
            await trio.sleep(net.env.uniform(0.0, 1.5 * ROUND))
            await author.stop()
            await trio.sleep(net.env.uniform(0.0, 10.0))
            await author.start()
        await author.all_listed(24 * ROUND)
        await trio.sleep(6 * ROUND)
        assert sorted(ear.payloads) == sorted(sent)
        assert not await author.store.scan("covered-message")  # type: ignore[arg-type]
        rounds = [one.at // ROUND for one in author.line.seen if one.sent > 4 * 4096]
        assert len(rounds) == len(set(rounds)), "a round has one set of letters, whenever its daemon starts"
