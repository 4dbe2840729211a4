"""Levels: source and Definitions 1 to 4 as the paper has them, at every step of any coming and going."""

from __future__ import annotations

from random import Random

import pytest
from broker_moves import play
from core_examples import properties
from filter_examples import TOPICS, WIDE, Brute, drawn, filters
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import MAX_NEIGHBOURS, Levels
from hushcast_protocol.brokers.filters import Filter

TOPIC = TOPICS[0]


def levels_of(*held: tuple[tuple[int, int] | None, str]) -> Levels:
    levels = Levels()
    for side, source in held:
        levels.insert(Filter(TOPIC, (side,)), source)
    return levels


def told(levels: Levels, side: tuple[int, int] | None) -> list[int]:
    return [levels.level(Filter(TOPIC, (side,)), condition) for condition in AnonymityCondition]


def test_each_definition_counts_the_sources_it_names():
    #          none: r
    #    [0, 5]: a, b      [4, 7]: c
    #  [0, 2]: a   [4, 5]: d, e (below both)
    levels = levels_of(
        (None, "r"), ((0, 5), "a"), ((0, 5), "b"), ((4, 7), "c"), ((0, 2), "a"), ((4, 5), "d"), ((4, 5), "e")
    )
    # source, ImSucc, Succ, ImSucc of ImPred, Succ of ImPred
    assert list(AnonymityCondition) == [
        "source",
        "immediate-successor",
        "successor",
        "immediate-predecessor-successor",
        "immediate-predecessor",
    ]
    assert told(levels, None) == [1, 3, 5, 0, 0]  # nothing is above it
    assert told(levels, (0, 5)) == [2, 3, 3, 3, 5]
    assert told(levels, (4, 7)) == [1, 2, 2, 3, 5]
    assert told(levels, (0, 2)) == [1, 0, 0, 3, 3]
    assert told(levels, (4, 5)) == [2, 0, 0, 3, 3]


def test_a_subscriber_with_many_filters_is_one_source():
    levels = levels_of((None, "r"), ((0, 1), "a"), ((2, 3), "a"), ((4, 5), "a"), ((4, 4), "a"))
    assert told(levels, None) == [1, 1, 1, 0, 0]


def test_levels_follow_who_comes_and_goes():
    levels = levels_of((None, "r"), ((0, 5), "a"))
    assert levels.level(Filter(TOPIC, (None,)), AnonymityCondition.SUCCESSOR) == 1
    levels.insert(Filter(TOPIC, ((1, 2),)), "b")
    assert levels.level(Filter(TOPIC, (None,)), AnonymityCondition.SUCCESSOR) == 2
    assert levels.level(Filter(TOPIC, (None,)), AnonymityCondition.IMMEDIATE_SUCCESSOR) == 1
    levels.remove(Filter(TOPIC, ((0, 5),)), "a")
    assert told(levels, None) == [1, 1, 1, 0, 0]
    assert levels.reaches(Filter(TOPIC, (None,)), AnonymityCondition.SUCCESSOR, 1)
    assert not levels.reaches(Filter(TOPIC, (None,)), AnonymityCondition.SUCCESSOR, 2)


def test_what_it_has_not_raises_key_error():
    levels = levels_of(((0, 5), "a"))
    for side, source in (((0, 5), "b"), ((0, 4), "a")):
        with pytest.raises(KeyError):
            levels.remove(Filter(TOPIC, (side,)), source)
    assert told(levels, (0, 5)) == [1, 0, 0, 0, 0]


@properties(60)
@given(st.lists(st.tuples(filters(), st.integers(0, 3)), max_size=25), filters(), st.integers(0, 5))
def test_a_filter_that_is_not_there_is_judged_as_if_it_were(held, other, k):
    levels, brute = Levels(), Brute()
    for one, source in held:
        levels.insert(one, source)
        brute.insert(one, source)
    # One that is there already keeps its sources; another has none but those that are counted as its own.
    alone, counted = (brute.held.get(other, set()) | more for more in (set(), {"own", 1}))
    for also, sources in ((frozenset(), alone), (frozenset({"own", 1}), counted)):
        brute.held[other] = set(sources)
        for condition in AnonymityCondition:
            level = brute.level(other, condition)
            assert levels.reaches(other, condition, k, also) is (level >= k)
            if not also:
                assert levels.level(other, condition) == level
        del brute.held[other]
        if sources_of := {source for one, source in held if one == other}:
            brute.held[other] = sources_of


@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_all_functions_and_conditions_hold_at_every_step(topic):
    play(Random(f"levels {topic.name}"), 150, [topic])


@pytest.mark.parametrize("condition", AnonymityCondition)
def test_with_more_neighbours_than_are_looked_at_a_level_is_never_too_high(condition):
    """Those beyond count for nobody."""
    random, exact, bounded = Random(f"bounded {condition}"), Levels(), Levels(is_bounded=True)
    held = [Filter(WIDE, ((at, 30_000 + at), None, None, None)) for at in range(150)]
    held += [Filter(WIDE, ((10_000 + at, 20_000 + at), None, None, None)) for at in range(150)]
    for at, one in enumerate(held):
        exact.insert(one, at)
        bounded.insert(one, at)
    for one in [*random.sample(held, 5), Filter(WIDE, ((5_000, 25_000), None, None, None))]:
        level = exact.level(one, condition)
        assert bounded.level(one, condition) <= level
        if level <= MAX_NEIGHBOURS // 2:
            assert bounded.level(one, condition) == level


def test_filters_of_several_topics_do_not_mix():
    play(Random("levels"), 150, TOPICS)


def test_an_empty_poset_has_levels_of_none():
    for condition in AnonymityCondition:
        assert Levels().level(drawn(Random(1)), condition) == 0
        assert not Levels().reaches(drawn(Random(1)), condition, 1)
