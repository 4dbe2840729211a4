"""Expulsion: who is named by trials, what a minority of trees can make of an honest relay, and the bounds."""

from __future__ import annotations

import random

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.authorities.expulsion import (
    EXPELLED_DAYS,
    MAX_AT_FAULT,
    MAX_EXPELLED,
    MAX_EXPELLED_A_DAY,
    MIN_TRIALS,
    ExpelledRelay,
    LossTrial,
    LossyRelay,
    extended,
    in_force,
    losers,
    reason,
)
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.overlay.coverage import ProbeCopy, judge, judged, ways
from hushcast_protocol.overlay.tree import plan

NAMES = [number.to_bytes(32, "big") for number in range(1, 101)]
VICTIM = NAMES[50]
DAY = 20_000 * EPOCHS_A_DAY


def trial(
    rng: random.Random, probes: int, bad: set[bytes], share: float, victim: bytes | None = None
) -> LossTrial:
    """One hidden subscription: probes with two origins each in a tree of its own, and what it tells.

    Bad relays lose a `share` of what they are given; with a `victim`, all that comes from it instead. One in
    500 copies is lost at each relay for no reason.
    """
    all_ways = ways([plan(NAMES, 2, rng.randbytes(16))], NAMES)
    outcomes = []
    for _ in range(probes):
        origins = rng.sample(NAMES, 2)
        came_by = set()
        for origin in origins:
            before = None
            for relay in all_ways[origin].relays:
                loses = rng.random() < share if victim is None else before == victim
                if (relay in bad and loses) or rng.random() < 0.002:
                    break
                before = relay
            else:
                came_by.add(all_ways[origin].relays[-1])
        copies = {origin: all_ways[origin] for origin in origins}
        for origin, arrived in judged(copies, origins, came_by).items():
            outcomes.append(ProbeCopy(copies[origin].relays, arrived, 0.0))
    return judge(outcomes).losses


def named(trials: list[LossTrial]) -> set[bytes]:
    return {loser.relay for loser in losers(trials)}


@pytest.mark.slow
@pytest.mark.parametrize(("share", "probes", "found"), [(1.0, 288, 10), (0.5, 288, 8), (0.1, 1200, 5)])
def test_a_tenth_that_loses_is_named_and_nobody_else(share: float, probes: int, found: int) -> None:
    """With some three probes of each relay in a tree, and with twelve."""
    rng, bad = random.Random(1), set(NAMES[:10])
    people = named([trial(rng, probes, bad, share) for _ in range(20)])
    assert people <= bad
    assert len(people) >= found


def test_colluders_above_a_relay_do_not_get_it_expelled() -> None:
    """A fifth of the relays loses just what comes from one honest relay, wherever they stand above it."""
    rng = random.Random(2)
    for _ in range(2):
        trials = [trial(rng, 288, set(NAMES[:20]), 0.0, VICTIM) for _ in range(MIN_TRIALS)]
        blamed = [one[VICTIM][0] >= 1.0 for one in trials if VICTIM in one]
        assert any(blamed)  # single trees do blame it
        assert named(trials) == set()


def test_colluders_above_it_in_more_than_half_of_the_trees_would() -> None:
    """Where a test of the rule could not fail, it would say nothing."""
    rng = random.Random(3)
    assert VICTIM in named([trial(rng, 288, set(NAMES[:50] + NAMES[51:]), 0.0, VICTIM) for _ in range(20)])


counts = st.tuples(st.floats(0, 1000), st.floats(0, 1000))


@pytest.mark.slow
@properties(100)
@given(st.lists(counts, min_size=MIN_TRIALS, max_size=60), st.data())
def test_half_of_the_trees_name_nobody(said: list[tuple[float, float]], data: st.DataObject) -> None:
    """Whatever half of the trials say of a relay: if it lost nothing in the others, it is not named."""
    clean = [(0.0, passed) for _, passed in said[: (len(said) + 1) // 2] if passed >= 1]
    rest = said[(len(said) + 1) // 2 :][: len(clean)]
    trials = [{VICTIM: count} for count in data.draw(st.permutations([*clean, *rest]))]
    assert losers(trials) == []


def test_a_few_trials_name_nobody() -> None:
    assert losers([{VICTIM: (50.0, 0.0)}] * (MIN_TRIALS - 1)) == []
    (loser,) = losers([{VICTIM: (50.0, 0.0)}] * MIN_TRIALS)
    assert loser == LossyRelay(VICTIM, 50.0 * MIN_TRIALS, 50.0 * MIN_TRIALS, MIN_TRIALS)
    # Trials that did not meet it are none of it.
    met, missed = {VICTIM: (50.0, 0.0)}, {VICTIM: (0.0, 0.1), NAMES[0]: (0.0, 50.0)}
    assert losers([met] * (MIN_TRIALS - 1) + [missed] * 5) == []


def test_a_little_loss_is_borne() -> None:
    assert losers([{VICTIM: (3.0, 97.0)}] * 40) == []
    assert [loser.relay for loser in losers([{VICTIM: (10.0, 90.0), NAMES[0]: (20.0, 80.0)}] * 40)] == [
        NAMES[0],
        VICTIM,
    ]


def listed(*since: int) -> list[ExpelledRelay]:
    return [ExpelledRelay(NAMES[number], epoch) for number, epoch in enumerate(since)]


def test_an_expulsion_ends() -> None:
    (one,) = listed(DAY)
    end = DAY + EXPELLED_DAYS * EPOCHS_A_DAY
    assert one.until == end
    assert [bool(in_force([one], epoch, NAMES)) for epoch in (DAY - 1, DAY, end - 1, end)] == [
        False,
        True,
        True,
        False,
    ]
    # Named again, it is left out for as long again.
    again = [one, ExpelledRelay(one.relay, end)]
    assert in_force(again, end, NAMES) == {one.relay}
    assert extended(again, [], end, NAMES) == (again[1],)
    assert "epoch 480168" in reason(one, 1_700_000_000.0)
    assert "2023-11-14 22:13 UTC" in reason(one, 1_700_000_000.0)


epochs = st.integers(DAY - 200, DAY + 20)


@pytest.mark.slow
@properties(150)
@given(st.lists(epochs, max_size=100), st.integers(0, 100))
def test_the_bounds_hold_whatever_a_list_says(since: list[int], relays: int) -> None:
    """Few of any day, a quarter at most; and as they leave the roster, the same stay out."""
    book, network = listed(*since), set(NAMES[:relays])
    out = in_force(book, DAY, network)
    everybody = len(network | out)
    assert len(out) <= MAX_EXPELLED * everybody
    days = [one.since // EPOCHS_A_DAY for one in book if one.relay in out]
    assert all(days.count(day) <= max(1, MAX_EXPELLED_A_DAY * everybody) for day in days)
    assert in_force(book, DAY, network - out) == out
    assert in_force(book, DAY, network | out) == out
    # Nobody is left in for nothing: with more relays at most more are left out.
    assert out <= in_force(book, DAY, set(NAMES))


@properties(100)
@given(st.lists(epochs, max_size=20), st.sets(st.integers(0, 99), max_size=25), st.integers(0, 23))
def test_a_list_grows_by_what_is_in_force(since: list[int], found: set[int], epoch: int) -> None:
    book = tuple(listed(*since))
    fresh = extended(book, [LossyRelay(NAMES[one], 5.0, 10.0, 20) for one in found], DAY + epoch, NAMES)
    running = [one for one in book if one.until > DAY + epoch]
    assert list(fresh[: len(running)]) == running
    added = {one.relay for one in fresh[len(running) :]}
    assert added <= {NAMES[one] for one in found} & in_force(fresh, DAY + epoch, NAMES)
    assert all(one.since == DAY + epoch and "5 of 10" in one.why for one in fresh[len(running) :])
    if found and not running:
        assert added


def test_where_too_many_lose_nobody_is_expelled() -> None:
    most = int(MAX_AT_FAULT * len(NAMES))
    found = [LossyRelay(relay, 5.0, 10.0, 20) for relay in NAMES]
    assert extended([], found[: most + 1], DAY, NAMES) == ()
    assert len(extended([], found[:most], DAY, NAMES)) == 5
    assert len(extended(extended([], found[:most], DAY, NAMES), found[:most], DAY + 24, NAMES)) == 10
