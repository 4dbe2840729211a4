"""Strangers and porters fill the hours of a third with their own messages, so that those of others are lost.

Where more comes than there is room for, what is lost is drawn from all rounds alike: who fills an hour early
would else have only its first rounds come out.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest
from steps import BUDGET, Moves, one_step

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.secrets import ParcelKey, sample
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import PASSED_A_ROUND, RECEIPT_ROUNDS, RELEASE_ROUNDS, CoverRules
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, NUMBER, LetterFind, LetterReceipt
from hushcast_protocol.cover.letter_release import MAX_HELD_BACK, HeldBody, LetterRelease
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_protocol.cover.letter_second import LetterSecond
from hushcast_protocol.cover.receipt_list import LISTED_A_ROUND, ReceiptList, listed_numbers
from hushcast_protocol.cover.waybills import Waybill

FIRST = 3_000_000  # a round that begins an hour
ONE, OTHER = b"s" * 32, b"o" * 32  # seconds
HONEST = {4: 62, 8: 31, 16: 39}  # daemons of a second and third by the width: of 1,000, 2,000 and 10,000
BODIES = 0.45  # of one in a round, where all read and publish twelve messages a day
Find = tuple[RelayId, LetterFind]


class FilledThird:
    """One third, as its desk has it, and one that deals with all in time."""

    def __init__(self, width: int = 8, seed: int = 1) -> None:
        self.chance = random.Random(seed)
        self.draw = self.chance.randbytes
        self.rules = CoverRules(bytes(32), 3_600, width=width)
        self.receipts = ReceiptList(self.draw)
        self.release = LetterRelease(self.rules)

    def letters(self, second: RelayId, count: int, bodies: float) -> Iterator[Find]:
        """So many letters of a second, with messages in a share of them."""
        for _ in range(count):
            is_loop = self.draw(1)[0] % LOOP_EVERY == 0
            receipt = LetterReceipt(self.draw(NUMBER), is_loop, self.draw(NUMBER))
            yield second, LetterFind(receipt, b"m" if self.chance.random() < bodies else None)

    def honest(self, second: RelayId, daemons: int) -> list[Find]:
        """The letters of a round of so many daemons, and of their porters for them."""
        return list(self.letters(second, daemons * PASSED_A_ROUND, BODIES / PASSED_A_ROUND))

    def end_round(self, now: int, finds: Iterable[Find]) -> dict[RelayId, frozenset[bytes]]:
        """Return the numbers that are listed in a round, by second."""
        finds = list(finds)
        for second, find in sample(self.draw, finds, len(finds)):
            if find.is_listed:
                self.receipts.note(second, find.receipt.number)
            if find.body is not None:
                self.release.hold(HeldBody(second, find.receipt.done, find.body, now), self.draw)
        listed = {second: listed_numbers(self.receipts.end_round(second)) for second in (ONE, OTHER)}
        if now == self.rules.released_in(now):
            self.receipts.end_hour()
        for held in self.release.let_go(now, self.draw):
            self.receipts.note_done(held.second, held.done)
        return listed


class Shares(NamedTuple):
    """What becomes of honest messages that come by one second."""

    lost: list[float]
    """The share that is not listed as done in time, and goes anew, by the round of an hour."""
    unlisted: float
    """The share that is not listed as it came, for which a chain is judged, too."""


NONE = Shares([0.0] * RELEASE_ROUNDS, 0.0)


def filled(width: int, places: int, letters: int = PASSED_A_ROUND) -> tuple[Shares, Shares]:
    """Return what becomes of the honest ones of a second that is flooded, and of another.

    So many waybills of strangers at the one second have so many letters each in each round, with a message in
    all of them; the other second has none such.
    """
    hours, third = 12, FilledThird(width)
    listed: list[dict[RelayId, frozenset[bytes]]] = []
    sent: dict[RelayId, list[tuple[int, LetterReceipt]]] = {ONE: [], OTHER: []}
    for now in range(FIRST, FIRST + RELEASE_ROUNDS * (hours + 2)):
        finds: list[Find] = []
        if now < FIRST + RELEASE_ROUNDS * hours:
            for second, messages in sent.items():
                own = third.honest(second, HONEST[width])
                messages += [(now, one.receipt) for _, one in own if one.body is not None]
                finds += own
            finds += third.letters(ONE, places * letters, 1.0)
        listed.append(third.end_round(now, finds))
    return _shares(third, listed, ONE, sent[ONE]), _shares(third, listed, OTHER, sent[OTHER])


def _shares(
    third: FilledThird,
    listed: list[dict[RelayId, frozenset[bytes]]],
    second: RelayId,
    sent: list[tuple[int, LetterReceipt]],
) -> Shares:
    lost: dict[int, list[bool]] = {place: [] for place in range(RELEASE_ROUNDS)}
    unlisted = 0
    for due, receipt in sent:
        later = listed[due - FIRST :][: third.rules.listed_in(due) + RECEIPT_ROUNDS + 1 - due]
        unlisted += receipt.number not in later[0][second]
        lost[due % RELEASE_ROUNDS].append(all(receipt.done not in one[second] for one in later))
    return Shares([statistics.mean(one) for one in lost.values()], unlisted / len(sent))


def shown_by(width: int, porters: int, each: int) -> int:
    """How many of so many waybills that each porter draws by itself, all for one third, a second takes."""
    draw, key, relay = random.Random(1).randbytes, ParcelKey(b"k" * 32), b"r" * 32
    rules, third = CoverRules(bytes(32), 3_600, width=width), b"t" * 32
    second = LetterSecond(rules, relay, key, {third}, FIRST)
    way, taken = Relay(relay, parse_address("127.0.0.1:9"), key.public(), 0), 0
    for porter in range(porters):
        for _ in range(each):
            sealed = Waybill.drawn(rules, way, third, draw).sealed
            with suppress(Refusal):
                taken += second.show(sealed, FIRST, bytes([porter]) * 32)
    return taken


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "porters", "unlisted"),
    [(8, 1, 0.0), (8, 3, 0.0), (8, 4, 0.005), (16, 1, 0.0), (16, 7, 0.0), (16, 8, 0.01), (4, 1, 0.0)],
)
def test_porters_that_fill_the_hours_of_a_third_lose_nobody_a_letter(
    width: int, porters: int, unlisted: float
) -> None:
    waybills = shown_by(width, porters, 64)
    assert waybills == porters * 192 // width
    flooded, other = filled(width, waybills)
    assert (flooded.lost, other) == (NONE.lost, NONE)
    assert flooded.unlisted <= unlisted


@pytest.mark.slow
@pytest.mark.parametrize(("width", "places"), [(8, 40), (8, 92), (16, 40), (16, 90), (4, 40), (4, 84)])
def test_strangers_that_fill_the_hours_of_a_third_lose_nobody_a_letter(width: int, places: int) -> None:
    assert filled(width, places) == (NONE, NONE)


@pytest.mark.slow
def test_of_a_hundred_places_nobody_loses_a_letter_unless_they_have_saved_some_for_the_hour() -> None:
    """A place hands in four letters a round, and what it held back for an hour makes that five."""
    assert filled(8, 100, letters=4) == (NONE, NONE)
    flooded, other = filled(8, 100)
    assert max(flooded.lost) < 0.1
    assert max(statistics.mean(flooded.lost), flooded.unlisted) < 0.05, "less than a chain is left for"
    assert other == NONE


@pytest.mark.slow
@pytest.mark.parametrize(("places", "least", "most"), [(200, 0.4, 0.6), (400, 0.65, 0.85)])
def test_what_is_lost_where_more_comes_is_drawn_from_all_rounds_alike(
    places: int, least: float, most: float
) -> None:
    flooded, other = filled(8, places)
    mean = statistics.mean(flooded.lost)
    assert least < mean < most, "it is not prevented"
    assert max(abs(one - mean) for one in flooded.lost) < 0.16, "four standard errors of 170 messages each"
    assert other == NONE


class JudgedDaemon:
    """A daemon that publishes twelve messages a day on four topics, and its own judge."""

    def __init__(self, third: FilledThird) -> None:
        self._third = third
        self._rounds = LetterRounds(third.rules, third.draw)
        self._published = 0

    @property
    def is_alarmed(self) -> bool:
        return self._rounds.judge.is_alarmed

    def hand_in(self, now: int, listed: frozenset[bytes]) -> list[Find]:
        """Hear a list, and hand letters in."""
        third, rounds = self._third, self._rounds
        rounds.note_listed(listed)
        rounds.end_round(now - 1, is_handed_in=True, is_line_there=True)
        if third.chance.random() < 1 / 12:
            self._published += 1
            rounds.publish(b"%d" % self._published, now, False, topic=f"{self._published % 4}")
        finds: list[Find] = []
        for planned in rounds.plan(now):
            ((second, find),) = third.letters(ONE, 1, float(planned.key is not None))
            rounds.note_sent(planned, find.receipt)
            finds.append((second, find))
        return [one for one in finds if one[1].is_listed]


def judged(places: int, days: int = 3) -> int:
    """How many of ten daemons leave a chain that loses nothing, within days in which strangers fill hours."""
    third = FilledThird()
    daemons = [JudgedDaemon(third) for _ in range(10)]
    listed: frozenset[bytes] = frozenset()
    for now in range(FIRST, FIRST + third.rules.rounds_in(days)):
        finds = [find for daemon in daemons for find in daemon.hand_in(now, listed)]
        finds += third.honest(ONE, HONEST[8] - len(daemons))
        finds += third.letters(ONE, places * PASSED_A_ROUND, 1.0)
        listed = third.end_round(now, finds)[ONE]
    return sum(daemon.is_alarmed for daemon in daemons)


@pytest.mark.slow
def test_no_chain_is_left_for_what_a_hundred_places_of_strangers_do_and_all_are_for_two_hundred() -> None:
    assert judged(100) == 0
    assert judged(200) == 10, "it is not prevented"


def test_which_waybills_a_second_takes_tells_their_porter_nothing_of_their_third() -> None:
    """A porter that has it take some of its own for each third would else find that of its daemon."""
    for porters, each in ((1, 64), (3, 10)):
        assert shown_by(8, porters, each) == porters * min(each, 24)
    rules, draw = CoverRules(bytes(32), 3_600, width=8), random.Random(1).randbytes
    key, relay = ParcelKey(b"k" * 32), b"r" * 32
    way = Relay(relay, parse_address("127.0.0.1:9"), key.public(), 0)
    thirds = [bytes([one]) * 32 for one in range(8)]
    for own in thirds:
        second = LetterSecond(rules, relay, key, set(thirds), FIRST)
        second.show(Waybill.drawn(rules, way, own, draw).sealed, FIRST, b"p" * 32)
        made = [Waybill.drawn(rules, way, thirds[one % 8], draw).sealed for one in range(23)]
        assert all(second.show(one, FIRST, b"p" * 32) for one in made)
        with pytest.raises(Refusal, match="quota"):
            second.show(Waybill.drawn(rules, way, own, draw).sealed, FIRST, b"p" * 32)


def test_a_third_holds_so_many_bodies_of_a_second_and_lets_them_go_in_short_steps() -> None:
    third, moves = FilledThird(16), Moves()
    seconds = [bytes([one]) * 32 for one in range(16)]
    for second in seconds:
        for number in range(MAX_HELD_BACK + 100):
            held = HeldBody(second, b"%d" % number, b"m", FIRST + number % RELEASE_ROUNDS)
            assert third.release.hold(held, third.draw) == (number < MAX_HELD_BACK)
    with one_step():
        gone = third.release.let_go(FIRST + RELEASE_ROUNDS, third.draw)
    moves.next()
    moves.longest = 0.0
    count = 0
    for _ in gone:
        count += 1
        if count % 256 == 0:
            moves.next()
    assert count == 16 * MAX_HELD_BACK
    assert moves.longest < BUDGET
    for _ in range(5 * LISTED_A_ROUND):
        third.receipts.note(ONE, third.draw(NUMBER))
        third.receipts.note_done(ONE, third.draw(NUMBER))
    with one_step():
        third.receipts.end_round(ONE)
