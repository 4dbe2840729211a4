"""How filters get to propagate by probing, which goes from general to detailed."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from filter_examples import drawn
from hypothesis import given as drawn_from
from hypothesis import strategies as st
from tomography_examples import WHOLE, several, wanted

from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.tomography.filter_probe import MAX_STEPS, FilterProbe, ladder


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
