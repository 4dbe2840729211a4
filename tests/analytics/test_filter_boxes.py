"""Boxes in numpy: what covers what and which is nearest, beside comparing all filters with all."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from hushcast_analytics.filters.boxes import OPEN, Boxes
from hushcast_analytics.filters.edge_colluders import VoucherRules, colluders, counted
from hushcast_analytics.filters.topic_levels import Sources, codes_of, size_of
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

Box = tuple[tuple[int, int], ...]


def drawn(random: Random, attributes: int, count: int, open_: float) -> list[Box]:
    def side() -> tuple[int, int]:
        low, high = sorted((random.randrange(8), random.randrange(8)))
        return OPEN if random.random() < open_ else (low, high)

    return sorted({tuple(side() for _ in range(attributes)) for _ in range(count)})


def covers(wide: Box, narrow: Box) -> bool:
    pairs = zip(wide, narrow, strict=True)
    return wide != narrow and all(w[0] <= n[0] and w[1] >= n[1] for w, n in pairs)


@pytest.mark.parametrize("open_", [0.0, 0.4])
@pytest.mark.parametrize(("attributes", "count"), [(0, 1), (1, 20), (2, 150), (3, 200), (4, 90)])
def test_all_relations_are_those_of_all_pairs(attributes: int, count: int, open_: float) -> None:
    given = drawn(Random(attributes), attributes, count, open_)
    ends = np.array(given, np.int64).reshape(len(given), attributes, 2)
    boxes = Boxes(ends[:, :, 0].T, ends[:, :, 1].T)
    held = [given[row] for row in boxes.order]
    assert sorted(boxes.in_place()) == list(range(len(held)))
    for slot, one in enumerate(held):
        below = [s for s, other in enumerate(held) if covers(one, other)]
        above = [s for s, other in enumerate(held) if covers(other, one)]
        assert list(boxes.covered(slot)) == below
        assert list(boxes.covering(slot)) == above
        near = [s for s in below if not any(covers(held[t], held[s]) for t in below)]
        assert sorted(boxes.widest(np.array(below, int))) == near
        over = [s for s in above if not any(covers(held[s], held[t]) for t in above)]
        assert sorted(boxes.narrowest(np.array(above, int))) == over


def test_a_source_counts_once_whether_a_crowd_is_a_list_or_a_bitmap() -> None:
    codes = np.array([*range(300), 5, 5, 7, *range(299)], np.int32)
    starts = np.array([0, 300, 302, 303, 602])
    sources = Sources(starts, codes)
    many, few = sources.of(np.array([0])), sources.of(np.array([1, 2]))
    assert (many.dtype, few.dtype) == (np.uint64, np.int32)
    assert [size_of(crowd) for crowd in (many, few)] == [300, 2]
    assert sorted(codes_of(few)) == [5, 7]
    assert list(codes_of(sources.union([few, sources.of(np.array([3])), many]))) == list(range(300))


def test_those_who_collude_claim_what_the_rules_let_them() -> None:
    # Four brokers; one filter with three real subscribers behind the first, another with one behind each.
    counts = [[[3, 0, 0, 0]] * 5, [[1, 1, 1, 1]] * 5]
    behind = [np.array(each, "<i4").tobytes() for each in counts]
    (bad,) = colluders(4, 0.25, seed=1)
    assert {bad} < set(colluders(4, 0.5, seed=1))
    asked = ([AnonymityCondition.SOURCE], [4])
    rules = [VoucherRules(None, None), VoucherRules(1, None), VoucherRules(1, 3)]
    none, capped, spread = counted(behind, 4, asked, [0.0], rules, seed=1)
    assert (none["claimed"], none["true"], none["wrongly"]) == (0.5, 0.5, 0.0)
    assert (capped["claimed_level"], capped["true_level"]) == (2.5, 3.5)
    assert spread["claimed"] == 0.5
    assert (none["ask"], none["safe"]) == (None, 0.0)
    assert (capped["ask"], capped["safe"]) == (4, 0.5)
    free, capped, spread = counted(behind, 4, asked, [0.25], rules, seed=1)
    first = bad == 0
    assert (free["claimed"], free["wrongly"]) == (1.0, 1.0)  # one liar vouches for as many as are asked for
    assert free["true_level"] == (1.5 if first else 3.0)
    assert (capped["claimed"], capped["wrongly"]) == (
        0.5,
        1.0,
    )  # the second: three real ones, and a bogus one
    assert spread["claimed"] == 0.5
    assert (capped["ask"], capped["safe"]) == (
        5,
        0.0,
    )  # no filter has four true sources of three honest brokers
