"""Some clients of an edge broker choose filters that are dear to compare, to keep its other clients waiting.

They had as many wide ranges over as many narrow ones, and each pair was an edge, with memory of its own. And
one who went had the broker search for another filter in place of each that was hidden among its own, in one
step.
"""

from __future__ import annotations

import tracemalloc

import pytest
from steps import one_step

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.exposure import OPEN, Exposure
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.content.topics import make_topic

LINE = make_topic("line", ["a:0..65535"])
PLANE = make_topic("plane", ["a:0..65535", "b:0..65535"])
FILTERS = 256
"""Of each client, as many as it may have."""
CHOSEN = 128
"""Wide ranges, none of which covers another, and narrow ones that lie in all of them."""


def named(number: int) -> tuple[str, bytes]:
    return f"client {number // FILTERS}", number.to_bytes(16, "big")


@pytest.mark.slow
async def test_wide_ranges_over_narrow_ones_cost_by_their_number_and_not_by_their_pairs() -> None:
    wide = [Filter(LINE, ((at, 40_000 + at),)) for at in range(CHOSEN)]
    narrow = [Filter(LINE, ((20_000 + at, 20_500 + at),)) for at in range(CHOSEN)]
    exposure = Exposure()
    tracemalloc.start()
    for number, one in enumerate((*wide, *narrow)):
        exposure.subscribe(*named(number), one, OPEN)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 2 * CHOSEN * 4096
    for between in (Filter(LINE, ((19_990, 30_000),)), Filter(LINE, (None,))):
        with one_step():
            exposure.subscribe("another", bytes(16), between, OPEN)
        with one_step():
            exposure.unsubscribe("another", bytes(16))


@pytest.mark.slow
@pytest.mark.parametrize("condition", AnonymityCondition)
async def test_who_asks_for_levels_among_them_is_answered_in_short_steps(
    condition: AnonymityCondition,
) -> None:
    exposure, terms = Exposure(), AnonymityTerms(40, condition, "generalise")
    for at in range(CHOSEN):
        sides = ((at, 40_000 + at), (20_000 + at, 20_500 + at))
        for number, side in enumerate(sides):
            exposure.load(*named(2 * at + number), Filter(LINE, (side,)), terms if at % 64 == 0 else OPEN)
    for _ in range(1000):
        with one_step():
            exposure.advance()
        if not exposure.is_waiting:
            break
    assert not exposure.is_waiting, "it comes to an end"
    for at in range(40):  # so many that they could be enough, were they not elsewhere
        exposure.load(f"elsewhere {at}", bytes(16), Filter(LINE, ((60_000 + at, 60_000 + at),)), OPEN)
    for _ in range(20):
        with one_step():
            exposure.advance()
    between = Filter(LINE, ((19_990, 30_000),))
    with one_step():
        exposure.subscribe("another", bytes(16), between, terms)
    with one_step():
        exposure.unsubscribe("another", bytes(16))
    with one_step():
        exposure.forget(named(0)[0])


@pytest.mark.slow
async def test_who_goes_leaves_no_search_for_all_that_it_hid_in_one_step() -> None:
    exposure, terms = Exposure(), AnonymityTerms(3, AnonymityCondition.SUCCESSOR, "generalise")
    hidden = [Filter(PLANE, ((30_000 + at, 30_010 + at), (30_000, 30_010))) for at in range(3)]
    for at, one in enumerate(hidden):
        exposure.subscribe(f"hidden {at}", bytes(16), one, OPEN)
    shown = [Filter(PLANE, ((at, 40_000 + at), (2 * at, 40_000 + 2 * at))) for at in range(12)]
    for number, one in enumerate(shown):
        exposure.subscribe(*named(number), one, terms)
    assert exposure.shown.issuperset(shown)
    with one_step():
        changes = exposure.unsubscribe("hidden 0", bytes(16))
    assert exposure.shown.isdisjoint(shown), "what sank is withdrawn at once"
    assert changes.roots.withdrawn
    turns = 0
    while exposure.is_waiting and turns < 1000:
        turns += 1
        with one_step():
            exposure.advance()
    assert turns < 1000, "searches come to an end"


async def test_a_search_that_began_before_somebody_left_shows_nothing_that_has_too_few_by_then() -> None:
    exposure, terms = Exposure(), AnonymityTerms(4, AnonymityCondition.SOURCE, "generalise")
    here = Filter(PLANE, ((10, 20), (10, 20)))
    exposure.subscribe("asks", bytes(16), here, terms)
    for at in range(300):
        exposure.subscribe(
            f"near {at % 3}", at.to_bytes(16, "big"), Filter(PLANE, ((at, 400), (at, 400))), OPEN
        )
    exposure.advance()
    exposure.forget("near 2")
    while exposure.is_waiting:
        exposure.advance()
    assert not [one for one in exposure.behind_shown().items() if "asks" in one[1][0]]
