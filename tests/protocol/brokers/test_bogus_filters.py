"""Bogus filters: enough by the definitions, the same whoever is there, and at the price that is told."""

from __future__ import annotations

from random import Random

import pytest
from filter_examples import Brute, drawn
from hypothesis import given as drawn_from
from hypothesis import strategies as st
from tomography_examples import WHOLE, several, wanted

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.bogus_filters import BELOW, bogus_beside, price
from hushcast_protocol.brokers.edge_subscriptions import BogusMeans
from hushcast_protocol.brokers.exposure import Exposure
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.frames import AnonymityTerms

NAME = bytes(16)


@several
@drawn_from(st.integers(0, 2**32), st.sampled_from(list(AnonymityCondition)), st.integers(2, 6))
def test_they_are_enough_by_the_definitions_whoever_is_there(
    seed: int, condition: AnonymityCondition, k: int
) -> None:
    random = Random(seed)
    brute = Brute()
    for _ in range(random.randrange(12)):
        brute.insert(drawn(random), random.randrange(5))
    given = random.choice([drawn(random), *brute.held])
    exposure = Exposure(means=BogusMeans(sources=True))
    changes = exposure.subscribe("own", NAME, given, AnonymityTerms(k, condition, "bogus"))
    if bogus_beside(given, [condition]) is None:
        assert not exposure.shown
        assert not changes.roots
        return
    for one, (sources, bogus) in exposure.behind_shown().items():
        for source in (*sources, *(("nobody", at) for at in range(bogus))):
            brute.insert(one, source)
    assert brute.level(given, condition) >= k
    assert changes.roots.shown | changes.roots.covered == exposure.behind_shown().keys()


@several
@drawn_from(st.integers(0, 2**32), st.sampled_from(list(AnonymityCondition)))
def test_one_stands_a_step_beside_the_filter_and_what_it_costs_is_told(
    seed: int, condition: AnonymityCondition
) -> None:
    given = drawn(Random(seed))
    beside = bogus_beside(given, [condition])
    told = price(given, condition, "bogus")
    if beside is None:
        assert told == (0, 0.0)
        return
    assert (beside.narrower is not None) is (condition in BELOW)
    assert (beside.wider is not None) is (condition not in {*BELOW, AnonymityCondition.SOURCE})
    assert told.rows == len(beside.covered(given))
    if beside.narrower is not None:
        assert covers(given, beside.narrower)
        assert told.excess == 0.0
    if beside.wider is not None:
        assert covers(beside.wider, given)
        assert told.excess == pytest.approx(beside.wider.volume - given.volume)


def test_what_matches_the_whole_topic_has_nothing_above_it_and_one_message_nothing_below() -> None:
    one = wanted((3, 3), (2, 2), "aa" * 14)
    assert bogus_beside(WHOLE, [AnonymityCondition.IMMEDIATE_PREDECESSOR]) is None
    assert bogus_beside(one, [AnonymityCondition.SUCCESSOR]) is None
    assert bogus_beside(one, [AnonymityCondition.SOURCE]) == (None, None)


def test_a_wider_one_brings_messages_that_a_held_back_filter_is_told_of_until_it_goes() -> None:
    """Also where the filter that it stands beside stays."""
    exposure = Exposure()
    given = wanted((40, 41))
    beside = bogus_beside(given, [AnonymityCondition.IMMEDIATE_PREDECESSOR])
    assert beside is not None
    assert isinstance(beside.wider, Filter)
    exposure.subscribe("open", NAME, given, AnonymityTerms(1, AnonymityCondition.SOURCE, "wait"))
    exposure.subscribe("hides", NAME, beside.wider, AnonymityTerms(9, AnonymityCondition.SOURCE, "wait"))
    assert exposure.is_shown("hides", NAME) is False
    terms = AnonymityTerms(3, AnonymityCondition.IMMEDIATE_PREDECESSOR, "bogus")
    exposure.subscribe("ann", NAME, given, terms)
    while exposure.is_waiting:
        exposure.advance()
    assert exposure.is_shown("hides", NAME) is True
    told = exposure.unsubscribe("ann", NAME).told
    while exposure.is_waiting:
        told |= exposure.advance().told
    assert told["hides", NAME] is False
    assert exposure.shown == {given}
