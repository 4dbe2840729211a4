"""Drawn answers: when they are said, and by how many, has nothing of how long anything took."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from itertools import pairwise
from statistics import fmean, stdev

import trio
import trio.testing

from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.transports.drawn_answers import HEARD_A_SECOND, HEARD_AT_ONCE, DrawnAnswers

WITHIN = 1.0
Said = list[tuple[float, int]]


def played(script: Callable[[DrawnAnswers], Awaitable[None]], seconds: float, seed: int = 1) -> Said:
    """What is said, and when, while a script runs."""
    said: Said = []

    async def play() -> None:
        answers = DrawnAnswers(simulated_environment(seed), WITHIN)

        async def say() -> None:
            while True:
                number = await answers.next()
                said.append((trio.current_time(), number))

        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(say)
                nursery.start_soon(script, answers)

    trio.run(play, clock=trio.testing.MockClock(autojump_threshold=0))
    return said


def taking(seconds: float, pause: float, count: int = 1) -> Callable[[DrawnAnswers], Awaitable[None]]:
    """Have some come again and again, which takes so long."""

    async def script(answers: DrawnAnswers) -> None:
        async def take() -> None:
            answers.came(count)
            await trio.sleep(seconds)
            answers.take(count)

        async with trio.open_nursery() as nursery:
            while True:
                await trio.sleep(pause)
                nursery.start_soon(take)

    return script


def test_how_long_something_took_is_in_no_answer() -> None:
    """Each comes alone, or one each hundredth of a second: what is said is the same, or hardly ever other."""
    for pause, lasts in ((5.0, 600.0), (0.02, 60.0)):
        at_once = played(taking(0.0, pause), lasts)
        assert len(at_once) > 90
        for seconds in (0.005, 0.02):
            later = played(taking(seconds, pause), lasts)
            assert [moment for moment, _ in later] == [moment for moment, _ in at_once]
            others = sum(one != other for one, other in zip(later, at_once, strict=True))
            # A part of the time is shorter than that with this chance, and what is open then is said next.
            chance = 8 * (seconds / WITHIN) ** 2
            assert others <= 3 * math.ceil(chance * len(at_once))


def test_answers_take_half_of_the_time_in_the_mean_and_have_no_edge() -> None:
    said = played(taking(0.002, 5.0), 2000.0)
    took = [moment - 5.0 * number for moment, number in said]
    assert all(0 < one <= WITHIN for one in took)
    assert abs(fmean(took) - WITHIN / 2) < 0.02
    assert stdev(took) > 0.14 * WITHIN
    assert sum(one < WITHIN / 20 for one in took) <= 1


def test_there_are_two_answers_in_that_time_however_much_comes() -> None:
    said = played(taking(0.0, 0.05), 100.0)
    assert 0.9 < fmean(later - one for (one, _), (later, _) in pairwise(said)) / (WITHIN / 2) < 1.1


def test_a_sign_of_life_is_answered_and_nothing_else_without_one() -> None:
    async def script(answers: DrawnAnswers) -> None:
        answers.came(0)
        await trio.sleep(10)
        answers.came(3)
        answers.take(3)
        await trio.sleep(10)
        answers.came(0)

    said = played(script, 60.0)
    assert [number for _, number in said] == [0, 3, 3]


def test_what_takes_longer_is_answered_once_it_is_taken_at_another_drawn_moment() -> None:
    async def script(answers: DrawnAnswers) -> None:
        answers.came(2)
        answers.came(5)
        await trio.sleep(3)
        answers.take(2)
        await trio.sleep(40)
        answers.take(5)
        answers.came(1)
        answers.take(1)

    said = played(script, 60.0)
    assert [number for _, number in said] == [2, 8]
    assert 3.0 < said[0][0] < 3.0 + 1.5 * WITHIN
    assert 43.0 < said[1][0] < 43.0 + 1.5 * WITHIN


def test_after_a_stall_answers_do_not_come_at_once() -> None:
    """They would for as long as the stall was, and show of each message when it was taken."""

    async def script(answers: DrawnAnswers) -> None:
        answers.came(1)
        await trio.sleep(100)
        answers.take(1)
        while True:
            answers.came(1)
            answers.take(1)
            await trio.sleep(0.01)

    said = played(script, 130.0)
    assert len(said) < 2 * 30 / WITHIN + 4


def test_what_is_heard_is_bounded() -> None:
    heard = 0

    async def script(answers: DrawnAnswers) -> None:
        nonlocal heard
        while True:
            heard += 10
            await answers.rest(10)

    played(script, 10.0)
    assert abs(heard - (HEARD_AT_ONCE + 10 * HEARD_A_SECOND)) <= 20


def test_signs_of_life_are_drawn() -> None:
    answers: list[DrawnAnswers] = []

    async def script(one: DrawnAnswers) -> None:
        answers.append(one)

    played(script, 1.0)
    drawn = [answers[0].quiet(60.0) for _ in range(100)]
    assert all(60.0 - WITHIN <= one <= 60.0 for one in drawn)
    assert stdev(drawn) > WITHIN / 5
