"""The judge of a chain's losses: what it finds and in how many rounds, what it forgives and remembers."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from hushcast_protocol.cover import loss_judge
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_protocol.cover.loss_judge import LossJudge, LossRecord

RULES = CoverRules(b"n" * 32, 3600)
DAY = RULES.rounds_in(1)
NOW = 3_000_000


def rounds_until_alarm(lost: float) -> float:
    """How many rounds are judged until an alarm in the mean, of a chain that loses a share of them.

    By the chain of Markov that scores are, in steps of a quarter of what a round that came takes off.
    """
    step = -loss_judge._ROUND_CAME / 4
    states, up = int(loss_judge.ALARM / step), round(loss_judge._ROUND_LOST / step)
    moves = np.zeros((states, states))
    for state in range(states):
        moves[state, max(0, state - 4)] += 1 - lost
        if state + up < states:
            moves[state, state + up] += lost
    mean: float = np.linalg.solve(np.eye(states) - moves, np.ones(states))[0]
    return mean


def test_false_alarms_are_years_apart_and_a_fifth_is_found_in_some_forty_rounds() -> None:
    """A daemon that publishes little is judged by 58 rounds a day; one that does much, by 100."""
    year_of_little, year_of_much = 58 * 365, 100 * 365
    assert rounds_until_alarm(0.01) > 1_000 * year_of_little
    assert rounds_until_alarm(0.02) > 10 * year_of_little
    assert rounds_until_alarm(0.02) > 5 * year_of_much
    assert rounds_until_alarm(0.2) < 40
    assert 300 < rounds_until_alarm(0.06) < 400


class Chain:
    """A daemon with one letter a round that is to be listed, or several."""

    def __init__(self) -> None:
        self.judge = LossJudge(RULES, LossRecord())
        self.now = NOW

    def play(self, rounds: int, came: Callable[[int], bool], letters: int = 1) -> LossJudge:
        for _ in range(rounds):
            self.now += 1
            for letter in range(letters):
                self.judge.note_sent(b"%d.%d" % (self.now, letter), self.now)
            listed = {b"%d.%d" % (self.now, letter) for letter in range(letters) if came(letter)}
            self.judge.note_listed(listed)
            self.judge.end_round(self.now)
        return self.judge


@pytest.mark.parametrize(("lost", "most"), [(0.2, 180), (0.4, 70), (1.0, 60)])
def test_a_chain_that_loses_rounds_is_found(lost: float, most: int) -> None:
    """At a fifth in some forty rounds that it is judged by; who loses all, when an outage would be over."""
    chance = random.Random(1)
    for _ in range(20):
        assert Chain().play(most, lambda _: chance.random() >= lost).is_alarmed


def test_one_that_loses_two_of_a_hundred_is_not_nor_one_whose_relays_restart_on_one_day() -> None:
    chance, chain = random.Random(1), Chain()
    assert not chain.play(100 * DAY, lambda _: chance.random() >= 0.02).is_alarmed
    for _ in range(3):
        chain.play(DAY, lambda _: True)
        for rounds in (1, 2, 2):
            chain.play(rounds, lambda _: False)
            assert not chain.play(9, lambda _: True).is_alarmed


@pytest.mark.parametrize("restarts_in", range(6))
def test_what_waits_for_its_hour_at_a_restart_is_counted_by_the_rounds_lost(restarts_in: int) -> None:
    """Else a third that restarts three times on a day is left by half of those who publish much."""
    scores = []
    for waits in (False, True):
        chain = Chain()
        chain.now = RULES.released_in(NOW)
        chain.play(restarts_in + 1, lambda _: True)
        if waits:
            chain.judge.note_came(b"waits", RULES.listed_in(chain.now))
        chain.play(2, lambda _: False)
        scores.append([chain.play(1, lambda _: True).record.score for _ in range(20)])
        assert not chain.judge.record.to_be_done
    assert scores[0] == scores[1] != [0.0] * 20


def test_an_hour_that_is_not_done_though_all_its_rounds_came_counts_as_a_round() -> None:
    chain = Chain()
    chain.judge.note_came(b"never done", RULES.listed_in(NOW))
    assert max(chain.play(1, lambda _: True).record.score for _ in range(30)) > 0


def test_a_round_counts_once_whatever_is_in_it() -> None:
    """Else who publishes much would take a restart for losses, and a letter of many for all of them."""
    one, many, part = Chain(), Chain(), Chain()
    for chain, letters in ((one, 1), (many, 4), (part, 4)):
        chain.play(2, (lambda letter: letter > 0) if chain is part else (lambda _: False), letters)
        chain.play(7, lambda _: True, letters)
    assert one.judge.record.score == many.judge.record.score > part.judge.record.score


def test_an_outage_counts_as_a_restart_once_a_month() -> None:
    """A third that is away for four hours is not left for it; who makes outages of its losses has one."""
    chain = Chain()
    chain.play(24, lambda _: False)
    assert not chain.play(9, lambda _: True).is_alarmed
    chain.play(2 * DAY, lambda _: True)
    chain.play(24, lambda _: False)
    assert chain.play(6, lambda _: True).is_alarmed
    other = Chain()
    for _ in range(3):
        other.play(24, lambda _: False)
        assert not other.play(30 * DAY, lambda _: True).is_alarmed


def test_hours_that_are_lost_as_a_whole_are_an_alarm_three_times_in_a_month() -> None:
    """Who loses one of 25 learns most by it of all who lose so little; relays are away once in months."""
    chain = Chain()
    for lost in (2, 3, 3):
        chain.play(lost, lambda _: False)
        assert not chain.play(2 * DAY, lambda _: True).is_alarmed, "two of a restart are none"
    chain.play(4, lambda _: False)
    assert chain.play(6, lambda _: True).is_alarmed
    rare = Chain()
    for _ in range(9):
        rare.play(3, lambda _: False)
        assert not rare.play(16 * DAY, lambda _: True).is_alarmed
    assert len(rare.judge.record.long) == 2, "of a month"


def longs(chain: Chain) -> int:
    """How many losses it knows of that no restart makes, once the last has ended."""
    return len(chain.play(9, lambda _: True).record.long)


@pytest.mark.parametrize(
    ("begin", "between", "is_long"),
    [(0, 0, False), (4, 0, False), (0, 1, True), (2, 2, True), (0, 4, True), (5, 1, False), (4, 3, False)],
)
def test_two_lost_rounds_of_an_hour_that_no_restart_has_are_a_loss_of_hours(
    begin: int, between: int, is_long: bool
) -> None:
    """Though nothing was due between them: half of the rounds of who publishes little have nothing listed."""
    chain = Chain()
    chain.now = RULES.released_in(NOW) + begin
    chain.play(1, lambda _: False)
    chain.play(between, lambda _: True, letters=0)
    chain.play(1, lambda _: False)
    assert longs(chain) == is_long


def test_messages_of_the_hour_before_do_not_end_what_is_lost() -> None:
    """They are listed as done while the letters of an hour are lost, and say that its third is there."""
    chain = Chain()
    chain.now = RULES.released_in(NOW)
    for times in (1, 2):
        chain.judge.note_came(b"before", chain.now + 2)
        for lost in range(3):
            chain.play(1, lambda _: False)
            chain.judge.note_listed({b"before"} if lost else ())
        assert longs(chain) == times
    assert not chain.judge.record.to_be_done


def test_who_loses_all_does_not_wait_for_the_end_of_an_outage() -> None:
    chain = Chain()
    assert not chain.play(36, lambda _: False).is_alarmed
    assert chain.play(10, lambda _: False).is_alarmed
    assert chain.play(10 * DAY, lambda _: True).is_alarmed, "until there is another chain"


def test_a_round_that_the_porter_did_not_have_counts_as_lost_and_days_of_them_as_one_outage() -> None:
    chance, chain = random.Random(1), Chain()
    for _ in range(2 * DAY):
        if chance.random() < 0.2:
            chain.now += 1
            chain.judge.note_missed(chain.now)
        else:
            chain.play(1, lambda _: True)
    assert chain.judge.is_alarmed
    away = LossJudge(RULES, LossRecord())
    for now in range(NOW, NOW + 10 * DAY):
        away.note_missed(now)
    assert len(away.record.rounds) == DAY


def test_lists_that_are_kept_no_more_do_not_count() -> None:
    judge = LossJudge(RULES, LossRecord())
    for due in range(NOW, NOW + DAY):
        judge.note_sent(b"%d" % due, due)
    judge.forget_before(NOW + DAY)
    judge.end_round(NOW + 5 * DAY)
    assert (judge.record.lost, judge.record.score) == (0, 0.0)


def test_messages_count_as_loops_do_and_none_goes_once_a_chain_is_found() -> None:
    """Who publishes much finds it sooner; letters go on, and are empty."""
    draw, chance, found = random.Random(1).randbytes, random.Random(1), {1: 0, 10_000: 0}
    for seed in range(12):
        for every in found:
            rounds, passed = LetterRounds(RULES, draw), dict[int, set[bytes]]()
            for now in range(NOW, NOW + 10 * DAY):
                if now % every == 0:
                    rounds.publish(b"%d" % now, now, is_held=False, topic=str(now))
                for one in rounds.plan(now):
                    receipt = LetterReceipt(draw(NUMBER), draw(1)[0] % LOOP_EVERY == 0, draw(NUMBER))
                    rounds.note_sent(one, receipt)
                    passed.setdefault(one.due, set()).add(receipt.number)
                    passed.setdefault(RULES.released_in(one.due), set()).add(receipt.done)
                listed = passed.pop(now)
                rounds.note_listed(listed if chance.random() > 0.3 else set())
                rounds.end_round(now, is_handed_in=True, is_line_there=True)
                if rounds.judge.is_alarmed:
                    break
            assert now - NOW < 2 * DAY, seed
            found[every] += now - NOW
            rounds.publish(b"m", now, is_held=False)
            assert [one.key for one in rounds.plan(now + 1)] == [None] * 4
    assert 1.3 * found[1] < found[10_000]


@pytest.mark.parametrize("every", [10**9, 140], ids=["no lists", "an old list in 140 rounds"])
def test_who_keeps_lists_back_loses_what_is_on_them_and_no_message_goes_meanwhile(every: int) -> None:
    draw, since, used = random.Random(1).randbytes, NOW, []
    rounds, listed = LetterRounds(RULES, draw), dict[int, set[bytes]]()
    for now in range(NOW, NOW + DAY // 2):
        rounds.publish(b"%d" % now, now, is_held=False)
        for one in rounds.plan(now, since=since):
            used += [now] * (one.key is not None)
            receipt = LetterReceipt(draw(NUMBER), draw(1)[0] % LOOP_EVERY == 0, draw(NUMBER))
            rounds.note_sent(one, receipt)
            listed.setdefault(one.due, set()).add(receipt.number)
        if now % every == 0:
            rounds.note_listed(listed[since])
            since += 1
        rounds.end_round(now, is_handed_in=True, is_line_there=True)
    assert rounds.judge.is_alarmed
    assert max(used) <= NOW + 6


@pytest.mark.parametrize("away", [(5, 3 * DAY), (1, DAY // 8)], ids=["50 minutes", "eight wakes"])
def test_rounds_in_which_a_daemons_own_line_was_away_count_for_nothing(away: tuple[int, int]) -> None:
    """Handed in to nobody, or not handed in: the porter is asked nothing that it could have lost."""
    draw, (length, every) = random.Random(1).randbytes, away
    rounds, listed = LetterRounds(RULES, draw), dict[int, set[bytes]]()
    for now in range(NOW, NOW + 30 * DAY):
        is_there = now % every >= length
        rounds.publish(b"%d" % now, now, is_held=False, topic=str(now))
        for one in rounds.plan(now):
            receipt = LetterReceipt(draw(NUMBER), draw(1)[0] % LOOP_EVERY == 0, draw(NUMBER))
            if is_there or now % 2:
                rounds.note_sent(one, receipt)
            if is_there:
                listed.setdefault(one.due, set()).add(receipt.number)
                listed.setdefault(RULES.released_in(one.due), set()).add(receipt.done)
        if is_there:
            for due in [due for due in listed if due < now]:
                rounds.note_listed(listed.pop(due))
        rounds.end_round(now, is_there or now % 2 == 1, is_there)
        rounds.given_up()
    assert (rounds.judge.is_alarmed, rounds.judge.record.score) == (False, 0.0)


def test_an_honest_porter_that_is_away_for_most_of_a_day_is_no_alarm_once_in_a_month() -> None:
    chain = Chain()
    chain.judge.note_sent(b"held", NOW + 70)
    for chain.now in range(NOW, NOW + 120):
        chain.judge.note_missed(chain.now)
    assert not chain.play(DAY, lambda _: True).is_alarmed


@pytest.mark.parametrize("is_errand", [True, False])
@pytest.mark.parametrize("away", [0.2, 1.0])
def test_of_what_came_a_third_has_to_drop_messages_and_other_relays_to_do_errands(
    is_errand: bool, away: float
) -> None:
    """A third that lists what came and does nothing is left; for relays that are away nobody is."""
    chance, rounds = random.Random(1), LetterRounds(RULES, random.Random(1).randbytes)
    for now in range(NOW, NOW + 7 * DAY):
        if now % DAY == 0:
            for letter in range(66):
                rounds.publish(b"%d %d" % (now, letter), now, False, topic="one", is_errand=is_errand)
        for letter in rounds.plan(now):
            receipt = LetterReceipt(chance.randbytes(NUMBER), False, chance.randbytes(NUMBER))
            rounds.note_sent(letter, receipt)
            rounds.note_listed({receipt.number})
            if chance.random() >= away:
                rounds.note_listed({receipt.done})
        rounds.end_round(now, is_handed_in=True, is_line_there=True)
    if is_errand or away == 1.0:
        assert rounds.judge.is_alarmed is (away == 1.0)


@pytest.mark.parametrize("is_errand", [True, False])
def test_letters_that_do_not_come_are_lost_whatever_is_in_them(is_errand: bool) -> None:
    chance, rounds = random.Random(1), LetterRounds(RULES, random.Random(1).randbytes)
    for letter in range(66):
        rounds.publish(b"%d" % letter, NOW, False, topic="one", is_errand=is_errand)
    for now in range(NOW, NOW + DAY):
        is_lost = chance.random() < 0.5
        for letter in rounds.plan(now):
            receipt = LetterReceipt(chance.randbytes(NUMBER), False, chance.randbytes(NUMBER))
            rounds.note_sent(letter, receipt)
            if not is_lost:
                rounds.note_listed({receipt.number, receipt.done})
        rounds.end_round(now, is_handed_in=True, is_line_there=True)
    assert rounds.judge.is_alarmed
    assert len(rounds.messages) > 9, "and none goes any more"


def test_a_restart_of_a_third_that_holds_an_hour_back_is_no_alarm() -> None:
    """What it had is lost, of all six rounds, and those of the restart."""
    chance, rounds = random.Random(1), LetterRounds(RULES, random.Random(1).randbytes)
    restart = RULES.released_in(NOW + DAY) - 1
    for now in range(NOW, NOW + 2 * DAY):
        rounds.publish(b"%d" % now, now, False, topic=str(now))
        for letter in rounds.plan(now):
            receipt = LetterReceipt(chance.randbytes(NUMBER), False, chance.randbytes(NUMBER))
            rounds.note_sent(letter, receipt)
            if letter.due not in (restart, restart + 1):
                rounds.note_listed({receipt.number})
                if RULES.released_in(letter.due) != restart + 1:
                    rounds.note_listed({receipt.done})
        rounds.end_round(now, is_handed_in=True, is_line_there=True)
        assert not rounds.judge.is_alarmed
    assert rounds.judge.record.score > 0 or rounds.judge.record.lost == 0
