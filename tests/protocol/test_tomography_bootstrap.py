"""How filters get to propagate: bogus filters are enough, probing goes from general to detailed."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from filter_examples import Brute, drawn
from hypothesis import given as drawn_from
from hypothesis import strategies as st
from tomography_examples import WHOLE, several, wanted

from benchmarks.tomography.bogus import placing
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.tomography.filter_probe import MAX_STEPS, FilterProbe, ladder


@several
@drawn_from(st.integers(0, 2**32), st.sampled_from(list(AnonymityCondition)), st.integers(1, 6))
def test_bogus_filters_are_enough_by_the_definitions(
    seed: int, condition: AnonymityCondition, k: int
) -> None:
    random = Random(seed)
    levels, brute = Levels(), Brute()
    for _ in range(random.randrange(12)):
        one, source = drawn(random), random.randrange(5)
        if source not in levels.poset.sources(one):
            levels.insert(one, source)
            brute.insert(one, source)
    given = random.choice([drawn(random), *brute.held])
    own = {("own", at) for at in range(random.randrange(3))} or {"own"}
    placed = placing(levels, given, condition, k, own)
    for source in own:  # it is shown, with its own subscribers
        brute.insert(given, source)
    was = brute.level(given, condition)
    if placed is None:
        narrowest = all(isinstance(s, str) or (s and s[0] == s[1]) for s in given.sides)
        widest = not any(given.sides)
        assert (
            widest
            or narrowest
            or condition in (AnonymityCondition.SUCCESSOR, AnonymityCondition.IMMEDIATE_SUCCESSOR)
        )
        return
    assert bool(placed) == (was < k)
    number = 0
    for filter_, how_many in placed:
        assert how_many > 0
        for _ in range(how_many):
            number += 1
            brute.insert(filter_, ("nobody", number))
    assert brute.level(given, condition) >= k
    if condition in (AnonymityCondition.SOURCE, AnonymityCondition.SUCCESSOR):
        assert number == max(0, k - was)


def test_what_matches_the_whole_topic_has_nothing_above_it_and_one_message_nothing_below() -> None:
    levels = Levels()
    assert placing(levels, WHOLE, AnonymityCondition.IMMEDIATE_PREDECESSOR, 2, {"own"}) is None
    assert (
        placing(levels, wanted((3, 3), (2, 2), "aa" * 14), AnonymityCondition.SUCCESSOR, 2, {"own"}) is None
    )


def test_a_ladder_leads_from_the_topic_to_the_filter() -> None:
    given = wanted((40, 41), (2, 2), "aa" * 14)
    steps = ladder(given, 10, 5)
    assert steps[0] == (WHOLE, 1)
    assert steps[-1] == (given, 10)
    assert [step.k for step in steps] == [1, 2, 4, 6, 8, 10]
    for (wide, _), (narrow, _) in pairwise(steps):
        assert covers(wide, narrow)
        assert wide != narrow
    # Whoever wants something near passes the same cells.
    near = ladder(wanted((42, 43), (2, 3)), 10, 5)
    assert [one.filter for one in near[:4]] == [one.filter for one in steps[:4]]


@several
@drawn_from(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, MAX_STEPS))
def test_each_step_of_any_ladder_is_narrower_and_asks_for_no_less(seed: int, k: int, number: int) -> None:
    given = drawn(Random(seed))
    steps = ladder(given, k, number)
    assert steps[-1] == (given, k)
    assert len(steps) <= number + 1
    for before, after in pairwise(steps):
        assert covers(before.filter, after.filter)
        assert before.filter != after.filter
        assert before.k <= after.k


def test_a_probe_goes_on_stays_and_goes_back() -> None:
    given = wanted((40, 41))
    probe = FilterProbe(given, 4, 2)
    assert probe.shown is None
    probe.heard(False)
    assert probe.shown is None
    shown: list[Filter | None] = []
    while probe.next is not None:
        probe.heard(True)
        shown.append(probe.shown)
    assert shown[0] == WHOLE
    assert shown[-1] == given
    probe.heard(True)
    assert probe.shown == given
    probe.fell()
    assert probe.shown == shown[-2]
    for _ in range(5):
        probe.fell()
    assert probe.shown is None
