"""Answers of located feeds beside brute force, and a provider that cheats: a short run of `locating.py`."""

from __future__ import annotations

from random import Random

import pytest
from cheating import MEANS, Means
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from locating import try_attempt, try_case
from spatial_world import OWNER, World

from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.verifier import verify

EACH = 12  # attempts by each means
TRIES = 400


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**64))
def test_matches_are_those_of_brute_force_and_every_honest_answer_holds(seed: int) -> None:
    try_case(Random(seed))


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    # The last one has intervals without messages.
    return [World.draw(Random(f"worlds {number}"), 0 if number == 8 else 30) for number in range(9)]


@pytest.mark.parametrize("means", MEANS, ids=lambda means: means.__name__)
def test_a_provider_that_cheats_is_caught_by_name(means: Means, worlds: list[World]) -> None:
    caught = 0
    for at in range(TRIES):
        caught += try_attempt(worlds[at % len(worlds)], means) is not None
        if caught == EACH:
            return
    assert caught, "it could never be tried"


def test_intervals_follow_each_other(worlds: list[World]) -> None:
    world = worlds[0]
    before = None
    for interval, feed in enumerate(world.feeds):
        for one, answer in zip(world.subscriptions, world.answers[interval], strict=True):
            assert verify(OWNER.public(), one, encode(answer), before).batch.digest == feed.batch.digest
        before = feed.batch


def test_every_cut_and_every_flipped_bit_is_a_problem(worlds: list[World]) -> None:
    world = worlds[1]
    random = Random("bits")
    names = set()
    for one, answer in zip(world.subscriptions, world.answers[0], strict=True):
        data = encode(answer)
        for at in random.sample(range(len(data)), 60):
            flipped = bytearray(data)
            flipped[at] ^= 1 << random.randrange(8)
            for hostile in (data[:at], bytes(flipped)):
                with pytest.raises(InvalidAnswer) as raised:
                    verify(OWNER.public(), one, hostile)
                names.add(raised.value.problem)
    assert AnswerProblem.FORM in names


def test_answers_of_a_batch_do_not_depend_on_who_else_asked(worlds: list[World]) -> None:
    world = worlds[2]
    for interval, feed in enumerate(world.feeds):
        for one, answer in zip(world.subscriptions, world.answers[interval], strict=True):
            assert feed.answers([one]) == [answer]
