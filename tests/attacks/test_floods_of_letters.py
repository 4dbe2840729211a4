"""Somebody hands in more letters, waybills, lists or places than a round has, to fill or slow a relay.

Daemons, porters, seconds and thirds may each be hostile. Who says more than its part loses its link; what a
daemon sealed so that it opens for nobody costs no relay its link to an honest one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import trio
from lettered_network import LetterDaemon, desks_of, lettered_network
from small_network import ONE, small_network
from steps import one_step

from hushcast_overlay.relay.cover import errand_desk, parcel_errands, places
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, PeerError
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.cover import letter_batch, letter_second
from hushcast_protocol.cover.cover_frames import (
    MARKED_AT_ONCE,
    CoverLetters,
    CoverList,
    CoverListed,
    CoverMarked,
    CoverPassed,
    CoverPlace,
    CoverPlaced,
    CoverWaybill,
    MarkedContent,
)
from hushcast_protocol.cover.cover_rules import PASSED_A_ROUND
from hushcast_protocol.cover.letter_contents import CONTENT, NUMBER, LetterFind, LetterReceipt
from hushcast_protocol.cover.letters import Stage, empty_letter, size_at
from hushcast_protocol.cover.receipt_list import BLOCK, LIST
from hushcast_protocol.cover.waybills import WAYBILL, Waybill
from hushcast_protocol.overlay.frames import OverlayFrame
from hushcast_protocol.overlay.letter_errands import DropErrand, GiveErrand, errand_body
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

pytestmark = pytest.mark.slow


async def is_ended(channel: Channel[OverlayFrame]) -> bool:
    """Whether the other end closes a link, whatever it says before."""
    with trio.move_on_after(10) as waiting, suppress(TransportError, PeerError):
        while await channel.receive():
            pass
    return not waiting.cancelled_caught


def five(daemon: LetterDaemon, due: int) -> tuple[bytes, ...]:
    """A porter's empty letters."""
    way = daemon.relays
    return tuple(
        empty_letter(daemon.rules, way.second, way.waybill.name, due, daemon.draw)
        for _ in range(PASSED_A_ROUND)
    )


async def ended(net: Any, daemon: LetterDaemon) -> int:
    """Wait until a round has just ended; return it: relays take its letters now."""
    number = daemon.now + 1
    await net.sleep_until(daemon.rules.end_of(number) + 1)
    return number


async def test_a_daemon_that_hands_in_twice_a_round_loses_its_link() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        channel = await daemon.knock()
        now = daemon.now
        letters = daemon.sealed(now)
        await channel.send(CoverLetters(now, now, letters))
        await channel.send(CoverLetters(now, now, letters))
        assert await is_ended(channel)
        channel = await daemon.knock()
        assert daemon.placed is not None
        assert daemon.placed.refused is None
        await channel.send(CoverLetters(now + 2, now, letters))
        assert await is_ended(channel)
        other = LetterDaemon(net)
        foreign = other.sealed(daemon.now)
        while other.chain.porter == daemon.chain.porter:
            other = LetterDaemon(net)
            foreign = other.sealed(daemon.now)
        channel = await daemon.knock()
        await channel.send(CoverLetters(daemon.now + 1, now, foreign))
        assert await is_ended(channel)


async def test_a_second_link_of_a_place_ends_the_first_and_a_new_place_needs_a_stamp_and_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with lettered_network() as net:
        monkeypatch.setattr(places, "MAX_PLACES", 1)
        daemon = LetterDaemon(net)
        opening = daemon.opening()
        for stamp in (None, LetterDaemon(net).opening().stamp):
            unpaid: Channel[Any] = await net.knock(daemon.porter)
            await unpaid.send(CoverPlace(opening.place, opening.second, opening.waybill, stamp))
            assert await unpaid.one(60) == CoverPlaced("stamp", 0), "the first place costs one"
        first = await daemon.knock()
        second = await daemon.knock()
        assert await is_ended(first)
        third: Channel[Any] = await net.knock(daemon.porter)
        other = LetterDaemon(net)
        while other.chain.porter != daemon.chain.porter:
            other = LetterDaemon(net)
        await third.send(other.opening())
        assert await third.one(60) == CoverPlaced("quota", 0)
        await second.aclose()


async def test_a_porter_has_so_many_places_for_one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    async with lettered_network() as net:
        one, other = LetterDaemon(net), LetterDaemon(net)
        monkeypatch.setattr(places, "MAX_WAYBILLS_OF_PORTER", one.rules.width)  # 2 for one second
        while other.chain.second == one.chain.second or one.chain.porter == other.chain.second:
            other = LetterDaemon(net)
        refused = []
        for alike in (one, one, one, other):
            stranger = LetterDaemon(net)
            stranger.chain = replace(alike.chain, porter=one.chain.porter)
            waybill = Waybill.drawn(one.rules, alike.relays.second, alike.chain.third, one.draw)
            stranger.relays = replace(alike.relays, waybill=waybill)
            await (await stranger.knock()).aclose()
            assert stranger.placed is not None
            refused.append(stranger.placed.refused)
        assert refused == [None, None, "quota", None]


async def test_a_place_with_a_second_that_is_on_no_list_is_refused() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        channel: Channel[Any] = await net.knock(daemon.porter)
        opening = daemon.opening()
        await channel.send(type(opening)(opening.place, daemon.chain.third, opening.waybill, None))
        assert await channel.one(60) == CoverPlaced("list", 0)


async def test_a_porter_that_passes_more_than_a_round_has_loses_its_link() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        desk, porter = desks_of(daemon.second).second, daemon.chain.porter
        name = daemon.relays.waybill.name
        now = await ended(net, daemon)
        desk.take(CoverPassed(now, name, five(daemon, now)), porter)
        assert daemon.second.count("letters_refused") == PASSED_A_ROUND, "the waybill was not shown"
        desk.show(CoverWaybill(daemon.relays.waybill.sealed, None), porter)
        for other in (now - 1, now + 1):  # it is slow, or its clock is ahead
            desk.take(CoverPassed(other, name, five(daemon, other)), porter)
        assert daemon.second.count("letters_refused") == 3 * PASSED_A_ROUND
        desk.take(CoverPassed(now, name, five(daemon, now)), porter)
        with pytest.raises(DecodeError):
            desk.take(CoverPassed(now, name, five(daemon, now)), porter)
        assert len(desk._waybills._kept) == 1


async def test_letters_that_a_porter_passes_again_go_no_further() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        desk, porter = desks_of(daemon.second).second, daemon.chain.porter
        desk.show(CoverWaybill(daemon.relays.waybill.sealed, None), porter)
        now = daemon.now + 1
        letters = five(daemon, now)
        for later in range(3):
            await net.sleep_until(daemon.rules.end_of(now + later) + 1)
            desk.take(CoverPassed(now + later, daemon.relays.waybill.name, letters), porter)
        assert daemon.second.count("letters_refused") == 2 * PASSED_A_ROUND
        assert daemon.second.count("letters_passed") == PASSED_A_ROUND


async def test_a_porter_has_so_many_waybills_at_a_second_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        monkeypatch.setattr(letter_second, "MAX_WAYBILLS_OF_PORTER", daemon.rules.width)  # 3 at one second
        monkeypatch.setattr(letter_second, "MAX_WAYBILLS", 5)
        desk = desks_of(daemon.second).second
        for porter in (b"p" * 32, b"q" * 32):
            for _ in range(5):
                waybill = Waybill.drawn(daemon.rules, daemon.relays.second, daemon.chain.third, daemon.draw)
                desk.show(CoverWaybill(waybill.sealed, None), porter)
        assert sorted(one.porter[:1] for one in desk._machine._shown.values()) == [b"p"] * 3 + [b"q"] * 2
        desk.show(CoverWaybill(daemon.draw(WAYBILL), None), b"r" * 32)
        assert daemon.second.count("refused_quota") == 6
        with one_step():
            for _ in range(128):
                desk.show(CoverWaybill(daemon.draw(WAYBILL), None), b"s" * 32)
        with pytest.raises(DecodeError):
            desk.show(CoverWaybill(daemon.draw(WAYBILL), None), b"s" * 32)


async def test_what_a_daemon_sealed_badly_costs_no_honest_relay_its_link() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        second, third = desks_of(daemon.second).second, desks_of(daemon.third).third
        second.show(CoverWaybill(daemon.relays.waybill.sealed, None), daemon.chain.porter)
        now, name = await ended(net, daemon), daemon.relays.waybill.name
        odd = [daemon.draw(size_at(Stage.SECOND)), *five(daemon, now)]
        second.take(CoverPassed(now, name, (odd[0], odd[0], odd[1], odd[1], odd[2])), daemon.chain.porter)
        assert daemon.second.count("letters_refused") >= 3
        point = bytes(32) + daemon.draw(CONTENT - 32)
        third.take(CoverMarked(now, (MarkedContent(daemon.draw(32), point),) * 2), daemon.chain.second)
        assert daemon.third.count("letters_refused") == 2
        third.take(CoverMarked(now, (MarkedContent(daemon.draw(32), point),)), daemon.chain.porter)
        assert daemon.third.count("letters_refused") == 3, "it takes letters from seconds alone"


async def test_a_second_that_passes_more_than_its_waybills_have_loses_its_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with lettered_network() as net:
        monkeypatch.setattr(errand_desk, "MAX_LETTERS_HELD", 4 * MARKED_AT_ONCE)  # a quarter for each second
        daemon = LetterDaemon(net)
        desk, now = desks_of(daemon.third).third, await ended(net, daemon)

        def frame() -> CoverMarked:
            made = tuple(MarkedContent(daemon.draw(32), daemon.draw(CONTENT)) for _ in range(MARKED_AT_ONCE))
            return CoverMarked(now, made)

        for _ in range(4):
            desk.take(frame(), daemon.chain.second)
        assert len(desk._machine._batch) == MARKED_AT_ONCE, "the others have room"
        assert daemon.third.count("letters_refused") == 3 * MARKED_AT_ONCE
        with pytest.raises(DecodeError):
            desk.take(frame(), daemon.chain.second)


async def test_a_second_whose_letters_have_many_messages_takes_turns_and_none_waits_over_an_hour() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        desk, batch = desks_of(daemon.third).third, desks_of(daemon.third).third._machine._batch
        for second, messages in ((b"m" * 32, 40), (daemon.chain.second, 3)):
            for _ in range(messages):
                body = errand_body(DropErrand(net.composed(ONE, Content(b"a message"))))
                receipt = LetterReceipt(daemon.draw(NUMBER), False, daemon.draw(NUMBER))
                batch.hold(daemon.draw(32), (second, LetterFind(receipt, body)))
        await desk.end_round(daemon.now)
        await desk.let_go(daemon.now)
        desk._receipts.note_done(daemon.chain.second, daemon.draw(NUMBER))
        desk._parcels._under_way[daemon.chain.porter] = parcel_errands.GIVEN_TO_ONE  # so it waits
        desk._parcels.add(daemon.chain.second, b"", GiveErrand(daemon.chain.porter, b""))
        first = [desk._errands.pop()[0] for _ in range(6)]
        assert first.count(daemon.chain.second) == 3, "one each in turn, whatever came first"
        assert desk._errands
        await desk.let_go(daemon.now + 2)
        waiting = desk._errands, desk._parcels._waiting, desk._receipts._done
        assert not any(waiting)


async def test_a_third_lists_once_a_round_and_a_second_hands_down_as_often() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        desk, now = desks_of(daemon.second).second, daemon.now
        listed = CoverList(now, daemon.draw(LIST))
        desk.take_list(listed, daemon.chain.third)
        desk.take_list(listed, daemon.chain.porter)  # on no list, or a third with a list of its own
        desk.take_list(CoverList(now - 1, listed.listed), daemon.chain.third)  # this one went past it
        assert len(desk._lists[daemon.chain.third]) == 1
        for again in (now, now + 2):
            with pytest.raises(DecodeError):
                desk.take_list(CoverList(again, listed.listed), daemon.chain.third)
        desk.show(CoverWaybill(daemon.relays.waybill.sealed, None), daemon.chain.porter)
        for round_, came in ((now, True), (now + 1, False)):  # then the third is away
            ((frame,),) = (await desk.hand_down(round_)).values()
            assert isinstance(frame, CoverListed)
            assert len(frame.sealed) == BLOCK
            if came:
                assert daemon.relays.waybill.opened_list(round_, frame.sealed) == listed.listed
            else:
                with pytest.raises(AuthenticationError):
                    daemon.relays.waybill.opened_list(round_, frame.sealed)
        channel = await daemon.knock()
        porter, name = desks_of(daemon.porter).porter, daemon.relays.waybill.name
        porter.take_list(CoverListed(now, name, daemon.draw(BLOCK)), daemon.chain.third)
        assert daemon.porter.count("letters_refused") == 1, "another than the second cannot hand down"
        porter.take_list(CoverListed(now, name, daemon.draw(BLOCK)), daemon.chain.second)
        with pytest.raises(DecodeError):
            porter.take_list(CoverListed(now, name, daemon.draw(BLOCK)), daemon.chain.second)
        await channel.aclose()


async def test_no_step_takes_long_whatever_is_handed_in() -> None:
    async with lettered_network() as net:
        daemon = LetterDaemon(net)
        desks = desks_of(daemon.third)
        now = await ended(net, daemon)
        made = tuple(MarkedContent(daemon.draw(32), daemon.draw(CONTENT)) for _ in range(MARKED_AT_ONCE))
        with one_step():
            desks.take(CoverMarked(now, made), daemon.chain.second)
    batch: letter_batch.LetterBatch[int] = letter_batch.LetterBatch(0)
    for number in range(letter_batch.MAX_LETTERS_HELD):
        batch.hold(number.to_bytes(32, "big"), number)
    with one_step():
        assert len(batch.end_round(daemon.draw)) == letter_batch.MAX_LETTERS_HELD
    with one_step():
        batch.check_new(b"letter")


async def test_letters_that_wait_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    async with lettered_network() as net:
        monkeypatch.setattr(letter_batch, "MAX_LETTERS_HELD", 3)
        daemon = LetterDaemon(net)
        desk = desks_of(daemon.second).second
        desk.show(CoverWaybill(daemon.relays.waybill.sealed, None), daemon.chain.porter)
        now = await ended(net, daemon)
        desk.take(CoverPassed(now, daemon.relays.waybill.name, five(daemon, now)), daemon.chain.porter)
        assert len(desk._machine._batch) == 3


async def test_a_relay_without_cover_gives_no_place_and_takes_no_word_of_it() -> None:
    async with small_network(relays=3, clients=0) as net:
        mole, other, _ = net.relays
        channel: Channel[Any] = await net.knock(other)
        await channel.send(CoverPlace(bytes(32), mole.id, bytes(WAYBILL), None))
        assert await channel.one(60) == CoverPlaced("cover", 0)
        assert mole.identity is not None
        await mole.stop()
        channel = await net.knock(other, us=mole.identity.seed)
        await channel.send(CoverWaybill(bytes(WAYBILL), None))
        assert await is_ended(channel)
        assert other.count("refused_form") == 1
