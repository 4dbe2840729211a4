"""Lists and chains of cover, a daemon's rounds, and a porter's queue that stays the same whatever comes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from hushcast_protocol.authorities.cover_draw import cover_draw
from hushcast_protocol.authorities.head_inside import BeaconState, HeadInside
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.cover_terms import NO_COVER, QUARTER, CoverTerms
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal, UsageError
from hushcast_protocol.cover.cover_chain import CHANGED_AFTER, PORTER_AWAY, CoverChain
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import DUE_A_ROUND, LETTERS_A_ROUND, PASSED_A_ROUND, CoverRules
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, MAX_LETTER_BODY, NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_rounds import (
    LOOPS,
    MAX_UNDER_COVER,
    RECEIPT_ROUNDS,
    LetterRounds,
    SealLetter,
)
from hushcast_protocol.cover.letters import OpenedLetter, SealedLetter
from hushcast_protocol.cover.porter_blocks import MAX_LISTS_WAITING, PorterBlocks
from hushcast_protocol.cover.porter_queue import MAX_LETTERS_WAITING, PorterQueue
from hushcast_protocol.cover.receipt_list import BLOCK, LIST, LISTED_A_ROUND, ReceiptList, listed_numbers
from hushcast_protocol.cover.waybills import Waybill, WaybillKey

RULES = CoverRules(b"n" * 32, 3600)
RELAYS = [bytes([n + 1]) * 32 for n in range(40)]
NOW = 3_000_000


def drawing(seed: int = 1):
    return random.Random(seed).randbytes


def letter(due: int) -> OpenedLetter:
    return OpenedLetter(due, RELAYS[0], b"came %d" % due)


def sealing(seed: int = 2) -> SealLetter:
    """Seals nothing: a letter is its body, and one of sixteen a loop."""
    draw = drawing(seed)

    def seal(due: int, body: bytes | None) -> SealedLetter:
        receipt = LetterReceipt(draw(NUMBER), draw(1)[0] % LOOP_EVERY == 0)
        return SealedLetter(due, body or b"", receipt)

    return seal


def test_lists_are_disjoint_the_same_for_all_and_gaps_are_filled() -> None:
    lists = CoverLists.drawn(RULES, b"v" * 32, RELAYS)
    assert lists == CoverLists.drawn(RULES, b"v" * 32, reversed(RELAYS))
    assert len(lists.seconds) == len(lists.thirds) == 4
    assert not lists.seconds & lists.thirds
    assert lists != CoverLists.drawn(RULES, b"w" * 32, RELAYS)
    gone = next(iter(lists.thirds))
    later = CoverLists.drawn(RULES, b"v" * 32, set(RELAYS) - {gone})
    assert later.seconds == lists.seconds
    assert len(later.thirds & lists.thirds) == 3


def test_too_few_relays_do_not_start_cover() -> None:
    with pytest.raises(Refusal, match=r"needs 12 relays .* there are 11"):
        CoverLists.drawn(RULES, b"v" * 32, RELAYS[:11])
    for wrong in ({"width": 3}, {"width": 17}, {"round_seconds": 10}):
        with pytest.raises(UsageError):
            replace(RULES, **wrong)


def test_a_chain_stays_until_it_has_to_change_and_a_month_has_passed() -> None:
    lists = CoverLists.drawn(RULES, b"v" * 32, RELAYS)
    chain = CoverChain.drawn(RELAYS, lists, 7, 0.0, drawing())
    assert len({chain.porter, chain.second, chain.third}) == 3
    without = CoverLists(lists.seconds - {chain.second}, lists.thirds)
    assert chain.with_lists(lists, 7, CHANGED_AFTER, False, drawing()) == chain
    for new, lost in ((lists, True), (without, False)):
        assert chain.with_lists(new, 7, CHANGED_AFTER - 1, lost, drawing()) == chain
        assert chain.with_lists(new, 7, CHANGED_AFTER, lost, drawing()).pair_since == CHANGED_AFTER
    assert chain.with_lists(lists, 8, 1.0, False, drawing()).quarter == 8
    assert chain.with_porter(RELAYS, 0.0, PORTER_AWAY, drawing()) == chain
    assert chain.with_porter(RELAYS, CHANGED_AFTER, CHANGED_AFTER + 1, drawing()) == chain
    other = chain.with_porter(RELAYS, 0.0, CHANGED_AFTER, drawing())
    assert other.porter != chain.porter
    assert (other.second, other.third) == (chain.second, chain.third)


@pytest.mark.parametrize("messages", [0, 1, 50])
def test_a_round_has_three_letters_at_once_and_one_held(messages: int) -> None:
    rounds = LetterRounds(RULES, drawing())
    for number in range(messages):
        rounds.publish(b"%d" % number, NOW, is_held=number % 2 == 0)
    seal, due = sealing(), Counter()
    for now in range(NOW, NOW + 400):
        made = rounds.letters(now, seal)
        assert len(made) == LETTERS_A_ROUND
        assert sorted(one.due - now > 0 for one in made) == [False, False, False, True]
        assert all(now <= one.due <= now + RULES.held_rounds for one in made)
        due += Counter(one.due for one in made)
    assert max(due.values()) == PASSED_A_ROUND, "no letter is over what a porter passes"
    assert DUE_A_ROUND == PASSED_A_ROUND - 3


def test_a_message_goes_anew_until_it_is_listed_or_given_up() -> None:
    rounds, seal = LetterRounds(RULES, drawing()), sealing()
    rounds.publish(b"m", NOW, is_held=False)
    went = {}
    for now in range(NOW, NOW + 12):
        for one in rounds.letters(now, seal):
            if one.sealed:
                went[now] = one.receipt.number
    assert list(went) == [NOW, NOW + RECEIPT_ROUNDS + 1, NOW + 2 * (RECEIPT_ROUNDS + 1)]
    rounds.note_listed({went[NOW + 10]})
    assert rounds.waiting == 0
    rounds.publish(b"lost", NOW, is_held=False)
    for now in range(NOW, NOW + 160):
        rounds.letters(now, seal)
    assert rounds.given_up() == [b"lost"]
    assert not rounds.given_up()


def test_loss_is_known_by_loops() -> None:
    lossy, whole = LetterRounds(RULES, drawing()), LetterRounds(RULES, drawing())
    seal = sealing()
    for now in range(NOW, NOW + 8 * LOOPS):
        lossy.letters(now, seal)
        whole.note_listed({one.receipt.number for one in whole.letters(now, seal)})
    assert lossy.loops_lost
    assert not whole.loops_lost


def test_a_daemon_refuses_what_no_letter_takes() -> None:
    rounds = LetterRounds(RULES, drawing())
    for body in (b"", b"m" * (MAX_LETTER_BODY + 1)):
        with pytest.raises(Refusal, match="1 to 3806 bytes"):
            rounds.publish(body, NOW, is_held=False)
    for _ in range(MAX_UNDER_COVER):
        rounds.publish(b"m", NOW, is_held=True)
    with pytest.raises(Refusal, match="too many"):
        rounds.publish(b"m", NOW, is_held=True)


def begun() -> PorterQueue:
    queue = PorterQueue(RULES, NOW - RULES.held_rounds, drawing())
    assert NOW - RULES.held_rounds <= queue.begins < NOW
    return queue


@pytest.mark.parametrize("there", [0, 1, 4])
def test_five_letters_leave_a_round_whatever_comes(there: int) -> None:
    queue = begun()
    for now in range(NOW, NOW + 40):
        for _ in range(there):
            queue.take(letter(now), now)
        passed = Counter(queue.end_round(now, lambda: b"made"))
        assert passed.total() == PASSED_A_ROUND
        assert passed[b"made"] == PASSED_A_ROUND - there


def test_a_held_letter_leaves_when_it_is_due_and_what_is_over_is_lost() -> None:
    queue = begun()
    for now in (NOW, NOW + 1):
        for _ in range(LETTERS_A_ROUND):
            queue.take(letter(NOW + 3), now)
    made = [queue.end_round(now, lambda: b"made").count(b"made") for now in range(NOW, NOW + 6)]
    assert made == [5, 5, 5, 0, 5, 5]


def test_no_letter_passes_later_than_it_is_due() -> None:
    queue = begun()
    queue.take(letter(NOW), NOW)
    assert queue.end_round(NOW + 1, lambda: b"made") == [b"made"] * PASSED_A_ROUND
    assert len(queue) == 0


def test_a_queue_refuses_more_than_a_round_holds_and_what_is_not_due() -> None:
    queue = begun()
    for due in (NOW - 1, NOW + RULES.held_rounds + 1):
        with pytest.raises(Refusal, match="day"):
            queue.take(letter(due), NOW)
    queue.take(letter(NOW), NOW)
    queue.take(letter(NOW), NOW)
    with pytest.raises(Refusal, match="rate"):
        queue.take(letter(NOW), NOW)
    now = NOW
    while len(queue) < MAX_LETTERS_WAITING:
        now += 1
        for _ in range(min(LETTERS_A_ROUND, MAX_LETTERS_WAITING - len(queue))):
            queue.take(letter(now + RULES.held_rounds), now)
    with pytest.raises(Refusal, match="quota"):
        queue.take(letter(now + 1), now + 1)


def test_letters_begin_after_a_while_and_end_days_after_the_daemon_went() -> None:
    begins, ends = set(), set()
    for seed in range(60):
        queue = PorterQueue(RULES, NOW, drawing(seed))
        queue.take(letter(NOW), NOW)
        passed = [len(queue.end_round(now, lambda: b"made")) for now in range(NOW, NOW + 800)]
        assert set(passed) == {0, PASSED_A_ROUND}
        first = passed.index(PASSED_A_ROUND)
        begins.add(first)
        ends.add(first + passed[first:].index(0) - 1)
    assert min(begins) < 20 < 120 < max(begins) < 144
    assert 2 * 144 <= min(ends) < 310 < 550 < max(ends) <= 4 * 144


def test_a_list_of_receipts_has_one_size_and_loses_none() -> None:
    receipts = ReceiptList(drawing())
    numbers = {bytes([n // 256, n % 256]) * 4 for n in range(LISTED_A_ROUND + 10)}
    for number in numbers:
        receipts.note(number)
    blocks = [receipts.end_round() for _ in range(3)]
    assert {len(block) for block in blocks} == {LIST}
    assert numbers <= listed_numbers(blocks[0]) | listed_numbers(blocks[1])
    assert not numbers & listed_numbers(blocks[2])
    with pytest.raises(DecodeError):
        listed_numbers(blocks[0][1:])


def test_each_round_has_one_list_at_most_and_three_days_are_kept() -> None:
    blocks = PorterBlocks(RULES, NOW)
    blocks.take(NOW - 2, b"one")
    for again in (NOW - 2, NOW - 3):
        with pytest.raises(DecodeError):
            blocks.take(again, b"again")
    blocks.take(NOW - 1, b"two")
    closed = [blocks.close(now) for now in (NOW, NOW + 1, NOW + 2)]
    assert closed == [(NOW - 2, b"one"), (NOW - 1, b"two"), None]
    assert list(blocks.asked_for(NOW, NOW + 9)) == [NOW, NOW + 1, NOW + 2]
    assert len(blocks.asked_for(0, NOW + 9)) == 432 == RULES.rounds_in(3)
    for number in range(MAX_LISTS_WAITING + 2):
        blocks.take(NOW + number, b"%d" % number)
    assert blocks.close(NOW + 3) == (NOW + 2, b"2"), "the oldest give way"


def test_a_list_goes_down_sealed_for_one_daemon_and_round() -> None:
    own, other = (Waybill(b"", RELAYS[0], WaybillKey.draw(drawing(seed))) for seed in (1, 2))
    listed = ReceiptList(drawing()).end_round()
    sealed = own.sealed_list(NOW, listed)
    assert len(sealed) == BLOCK
    assert own.opened_list(NOW, sealed) == listed
    assert other.sealed_list(NOW, listed) != sealed
    for waybill, now in ((other, NOW), (own, NOW + 1)):
        with pytest.raises(AuthenticationError):
            waybill.opened_list(now, sealed)


def test_the_value_of_a_quarter_stays_and_nobody_has_cover_without_the_rule() -> None:
    terms = CoverTerms(600, 4, 30)
    epoch = 40 * QUARTER * 24
    listing = Listing(epoch, (), ())
    draw = cover_draw(None, b"p" * 32, listing, terms, None)
    assert draw is not None
    assert draw.quarter == 40
    assert cover_draw(None, b"q" * 32, listing, terms, None) != draw
    assert cover_draw(None, b"p" * 32, listing, terms, b"b" * 32) != draw
    assert cover_draw(None, b"p" * 32, listing, NO_COVER, None) is None
    state = BeaconState(None, None, (), (), ())
    last = epoch, HeadInside(listing.root, 0, state, (), cover=draw)
    for later, stays in ((1, True), (QUARTER * 24 - 1, True), (QUARTER * 24, False)):
        found = cover_draw(last, b"q" * 32, Listing(epoch + later, (), ()), terms, b"b" * 32)
        assert (found == draw) == stays
