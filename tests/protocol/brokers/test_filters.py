"""Filters: one normal form, covering as messages have it, and what mergers add."""

from __future__ import annotations

from math import isclose

import pytest
from core_examples import properties
from filter_examples import TOPICS, drawn, filters, messages
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.brokers.filters import Filter, Merger, covers, merge
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, Topic, make_topic

EVENTS = make_topic("events", ["kind", "lat:-90..90:0.001", "lon:-180..180:0.001"])
SMALL = TOPICS[:3]


def wanted(where: str, topic: Topic = EVENTS) -> Filter:
    return Filter.of(Interest(topic, parse_where(where, topic.attributes)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("lat in [60, 61]", "lat in[60.0,61.00]"),
        ("kind = fire, lat in [60, 61]", 'lat in [60, 61], kind = "fire"'),
        ("lat in [85, 90]", "lat in [85, 1000]"),
        ("lat in [60.0004, 61]", "lat in [60, 61]"),
        ("lat = 60", "lat in [60, 60]"),
    ],
)
def test_filters_that_match_the_same_are_one(one, other):
    assert wanted(one) == wanted(other)
    assert len({wanted(one), wanted(other)}) == 1


@pytest.mark.parametrize(
    ("wide", "narrow", "does"),
    [
        ("", "", True),
        ("", "kind = fire", True),
        ("kind = fire", "", False),
        ("kind = fire", "kind = fire, lat in [1, 2]", True),
        ("kind = fire", "kind = flood", False),
        ("lat in [1, 3]", "lat in [2, 3]", True),
        ("lat in [1, 3]", "lat in [2, 3.001]", False),
        ("lat in [1, 3]", "lon in [1, 3]", False),
        ("", "lat in [,]", True),
        # A message without a latitude does not meet a condition on it, however wide that is.
        ("lat in [,]", "", False),
        ("lat in [,]", "lat in [1, 3]", True),
    ],
)
def test_covering(wide, narrow, does):
    assert covers(wanted(wide), wanted(narrow)) is does


def test_filters_of_two_topics_do_not_cover_each_other():
    other = make_topic("events", ["kind", "lat:-90..90:0.01", "lon:-180..180:0.001"])
    assert not covers(wanted("", other), wanted(""))
    assert not covers(wanted(""), wanted("", other))


ALL = {topic: list(messages(topic)) for topic in SMALL}
pairs = st.sampled_from(SMALL).flatmap(lambda topic: st.tuples(filters([topic]), filters([topic])))


def matched(one: Filter) -> set[int]:
    """N(F): which of all messages of its topic a filter matches."""
    return {at for at, values in enumerate(ALL[one.topic]) if one.predicate.matches(values)}


@pytest.mark.slow
@properties(60)
@given(pairs)
def test_covering_is_what_messages_have(pair):
    one, other = pair
    assert covers(one, other) is (matched(one) >= matched(other))
    assert (one == other) is (matched(one) == matched(other))


@properties(60)
@given(pairs)
def test_a_merger_is_the_smallest_that_covers_both_and_perfect_if_it_matches_no_more(pair):
    one, other = pair
    merger = merge(one, other)
    assert covers(merger.filter, one)
    assert covers(merger.filter, other)
    assert merger.is_perfect is (matched(merger.filter) == matched(one) | matched(other))
    assert merger.added >= 0
    if merger.is_perfect:
        assert merger.added == 0


@properties(60)
@given(pairs, st.integers(0, 2**32))
def test_whatever_covers_both_covers_their_merger(pair, seed):
    from random import Random

    third = drawn(Random(seed), [pair[0].topic])
    if covers(third, pair[0]) and covers(third, pair[1]):
        assert covers(third, merge(*pair).filter)


@properties(80)
@given(filters())
def test_a_filter_is_a_predicate_and_back(one):
    assert Filter.of(Interest(one.topic, one.predicate)) == one
    assert 0 < one.volume <= 1


def test_volume_is_the_share_that_is_assumed_to_pass():
    grid = make_topic("t", ["kind", "x:0..99", "y:0..9"])
    assert wanted("", grid).volume == 1
    assert isclose(wanted("x in [0, 24]", grid).volume, 0.25)
    assert isclose(wanted("x in [0, 24], y in [0, 0]", grid).volume, 0.025)
    assert isclose(wanted("kind = fire", grid).volume, 1 / 32)


@pytest.mark.parametrize(
    ("one", "other", "both", "added", "is_perfect"),
    [
        ("x in [0, 9]", "x in [10, 19]", "x in [0, 19]", 0, True),
        ("x in [0, 9]", "x in [5, 19]", "x in [0, 19]", 0, True),
        ("x in [0, 9]", "x in [20, 29]", "x in [0, 29]", 0.1, False),
        ("x in [0, 9], y in [0, 4]", "x in [0, 9], y in [5, 9]", "x in [0, 9], y in [0, 9]", 0, True),
        ("x in [0, 9], y in [0, 4]", "x in [10, 19], y in [5, 9]", "x in [0, 19], y in [0, 9]", 0.1, False),
        ("x in [0, 9], y in [0, 4]", "x in [5, 14], y in [0, 9]", "x in [0, 14], y in [0, 9]", 0.025, False),
        ("x in [0, 9]", "y in [0, 4]", "", 0.45, False),
        ("kind = a", "kind = b", "", 1 - 2 / 32, False),
        ("kind = a, x in [0, 9]", "kind = a, x in [0, 19]", "kind = a, x in [0, 19]", 0, True),
        ("", "kind = a", "", 0, True),
    ],
)
def test_mergers(one, other, both, added, is_perfect):
    grid = make_topic("t", ["kind", "x:0..99", "y:0..9"])
    for pair in ((one, other), (other, one)):
        merger = merge(*(wanted(where, grid) for where in pair))
        assert (merger.filter, merger.is_perfect) == (wanted(both, grid), is_perfect)
        assert isclose(merger.added, added, abs_tol=1e-12)


def test_a_filter_is_hidden_in_print():
    one = wanted("kind = wildfire, lat in [60.125, 61]")
    for shown in (repr(one), str(one), repr(Merger(one, 0.0, True))):
        assert not any(hidden in shown for hidden in ("wildfire", "150125", "events", "lat"))
