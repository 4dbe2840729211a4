"""The filter that is shown in place of another: never one that may not be, and in small cases the best."""

from __future__ import annotations

from random import Random

import pytest
from filter_examples import WIDE, drawn
from generalising import ratios

from hushcast_protocol.brokers import generalisation as searching
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.generalisation import generalise
from hushcast_protocol.content.topics import make_topic

LINE = make_topic("line", ["x:0..99"])


def on(low: int, high: int) -> Filter:
    return Filter(LINE, ((low, high),))


def test_it_adds_hardly_more_volume_than_the_best_there_is():
    """A short form of `python tests/protocol/brokers/generalising.py`."""
    found, nothing, missed = ratios(seed=1, cases=60)
    assert len(found) > 20
    assert nothing > 5
    assert missed == 0
    assert sum(found) / len(found) <= 1.2


def test_with_few_tries_it_shows_nothing_that_it_must_not(monkeypatch):
    monkeypatch.setattr(searching, "MAX_TRIED", 2)
    found, _, _ = ratios(seed=2, cases=60)
    assert len(found) > 10


def test_a_filter_that_satisfies_is_shown_as_it_is():
    levels = Levels()
    for source in "abc":
        levels.insert(on(1, 2), source)
    shown = generalise(levels, on(1, 2), AnonymityCondition.SOURCE, 3)
    assert shown is not None
    assert (shown.filter, shown.added) == (on(1, 2), 0.0)
    assert generalise(levels, on(1, 2), AnonymityCondition.SOURCE, 4) is None


def test_ranges_are_joined_with_those_nearby():
    levels = Levels()
    for at, source in ((10, "a"), (20, "b"), (24, "c"), (90, "d")):
        levels.insert(on(at, at + 1), source)
    shown = generalise(levels, on(20, 21), AnonymityCondition.SUCCESSOR, 2)
    assert shown is not None
    assert shown.filter == on(20, 25)
    assert shown.added == pytest.approx(0.04)
    wider = generalise(levels, on(20, 21), AnonymityCondition.SUCCESSOR, 3)
    assert wider is not None
    assert wider.filter == on(10, 25)


def test_where_there_is_nobody_there_is_nothing_to_show():
    assert generalise(Levels(), on(1, 2), AnonymityCondition.SUCCESSOR, 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("condition", AnonymityCondition)
def test_among_many_what_is_shown_covers_and_satisfies(condition):
    random, levels = Random(1), Levels()
    held = list({drawn(random, [WIDE]) for _ in range(700)})
    for at, one in enumerate(held):
        levels.insert(one, at % 300)
    shown = 0
    for one in random.sample(held, 5):
        k, own = levels.level(one, condition) + 2, frozenset(levels.poset.sources(one))
        found = generalise(levels, one, condition, k)
        if found is not None:
            shown += 1
            assert covers(found.filter, one)
            assert found.filter != one
            if condition is not AnonymityCondition.SOURCE:
                assert levels.reaches(found.filter, condition, k, own)
    assert shown > 1
