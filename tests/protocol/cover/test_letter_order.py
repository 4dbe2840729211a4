"""The place of a letter among others of a frame tells nothing, nor does it tell what came first."""

from __future__ import annotations

import random
from collections import Counter

from hushcast_protocol.cover.cover_rules import (
    AT_ONCE_A_ROUND,
    LETTERS_A_ROUND,
    PASSED_A_ROUND,
    RELEASE_ROUNDS,
    CoverRules,
)
from hushcast_protocol.cover.letter_batch import LetterBatch
from hushcast_protocol.cover.letter_contents import NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_release import HeldBody, LetterRelease
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_protocol.cover.letters import OpenedLetter
from hushcast_protocol.cover.porter_queue import PorterQueue
from hushcast_protocol.cover.receipt_list import LISTED_A_ROUND, ReceiptList

RULES = CoverRules(b"n" * 32, 3600)
RELAY = b"r" * 32
NOW = 3_000_000 - 3_000_000 % RELEASE_ROUNDS
TIMES = 3_000


def drawing(seed: int = 1):
    return random.Random(seed).randbytes


def are_alike(places: Counter[int], number: int) -> bool:
    """Whether each of so many places is met about as often; of `TIMES` chance moves a share by 0.03."""
    assert places.total() > TIMES / 2
    return all(abs(places[one] / places.total() - 1 / number) < 0.03 for one in range(number))


def test_a_porter_sees_by_no_place_in_the_frame_which_letter_has_a_message() -> None:
    """It tells letters at once from held ones, so those are looked at by themselves."""
    rounds, draw = LetterRounds(RULES, drawing()), drawing(2)
    real, held = Counter[int](), Counter[int]()
    for now in range(NOW, NOW + 8 * TIMES):
        if not any(not one.is_held for one in rounds.messages):
            rounds.publish(draw(8), now, is_held=False)
        planned = rounds.plan(now)
        held[next(place for place, one in enumerate(planned) if one.due > now)] += 1
        at_once = [one for one in planned if one.due == now]
        for place, one in enumerate(at_once):
            receipt = LetterReceipt(draw(NUMBER), False, draw(NUMBER))
            rounds.note_sent(one, receipt)
            if one.key is not None:
                real[place] += 1
                rounds.note_listed({receipt.number, receipt.done})
    assert are_alike(real, AT_ONCE_A_ROUND)
    assert are_alike(held, LETTERS_A_ROUND)


def test_a_second_sees_by_no_place_which_letters_a_porter_made() -> None:
    queue, places = PorterQueue(RULES, NOW - RULES.held_rounds, drawing()), Counter[int]()
    for now in range(NOW, NOW + TIMES):
        queue.take(OpenedLetter(now, RELAY, b"came"), now)
        passed = queue.end_round(now, lambda: b"made")
        places[passed.index(b"came")] += 1
    assert are_alike(places, PASSED_A_ROUND)


def test_who_is_passed_letters_sees_by_no_place_when_they_came() -> None:
    batch: LetterBatch[int] = LetterBatch(NOW)
    draw, places = drawing(), Counter[int]()
    for _ in range(TIMES):
        for number in range(6):
            batch.hold(b"%d" % number, number)
        places[batch.end_round(draw).index(0)] += 1
    assert are_alike(places, 6)


def test_who_hears_what_a_third_lets_go_sees_by_no_place_in_which_round_it_came() -> None:
    draw, places = drawing(), Counter[int]()
    for hour in range(TIMES):
        release, first = LetterRelease(RULES), NOW + hour * RELEASE_ROUNDS
        for due in range(first, first + RELEASE_ROUNDS):
            release.hold(HeldBody(RELAY, b"", b"", due), draw)
        gone = list(release.let_go(first + RELEASE_ROUNDS - 1, draw))
        places[[one.round for one in gone].index(first)] += 1
    assert are_alike(places, RELEASE_ROUNDS)


def test_a_list_shows_by_no_place_what_is_a_number_of_a_letter_and_has_each_once() -> None:
    receipts, draw, thirds = ReceiptList(drawing()), drawing(2), Counter[int]()
    before = list[bytes]()
    for _ in range(TIMES // 10):
        numbers = [draw(NUMBER) for _ in range(10)]
        for number in numbers:
            receipts.note(RELAY, number)
        listed = receipts.end_round(RELAY)
        found = [listed[begin : begin + NUMBER] for begin in range(0, len(listed), NUMBER)]
        assert len({*found, *before}) == LISTED_A_ROUND + len(before), "no number is listed twice"
        thirds.update(found.index(number) * 3 // LISTED_A_ROUND for number in numbers)
        before = numbers
    assert are_alike(thirds, 3)
