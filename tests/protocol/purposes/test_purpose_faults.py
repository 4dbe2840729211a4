"""The published rule's faults: each shown on the published rule, and that it is none of ours.

Those of when it is asked (a subscription that is older than a reservation, queued and retained messages,
shared subscriptions), and of who may command, are the gateway's.
"""

from __future__ import annotations

import re
import time
from itertools import permutations

import published_purposes as published
import pytest

from hushcast_protocol.purposes.cached_reservations import CachedReservationTree
from hushcast_protocol.purposes.clauses import Clause, reserve
from hushcast_protocol.purposes.filter_reach import FilterReach
from hushcast_protocol.purposes.filter_spelling import filter_of
from hushcast_protocol.purposes.purpose_decision import decide
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.reservations import ReservationList, Reservations, ReservationTree
from hushcast_protocol.purposes.vocabulary import Vocabulary

WORDS = Vocabulary(["operations/billing", "marketing/individualized", "advertising"])
NONE: frozenset[str] = frozenset()
MARKETING, INDIVIDUALIZED = Purpose("marketing"), Purpose("marketing/individualized")
ADVERTISING, OPERATIONS = Purpose("advertising"), Purpose("operations")
STORES = [ReservationList, ReservationTree, CachedReservationTree]


def clause(owner: str, wanted: str, aip: list[str], pip: tuple[str, ...] = ()) -> Clause:
    return reserve(owner, wanted, aip, pip, WORDS)


def test_1_what_one_reservation_prohibits_is_prohibited_in_any_order() -> None:
    """`#` over {marketing} and {marketing | individualized}."""
    sets = [(frozenset([MARKETING]), NONE), (frozenset([MARKETING]), frozenset([INDIVIDUALIZED]))]
    theirs = {
        published.compatible(INDIVIDUALIZED, published.restricted(*order)) for order in permutations(sets)
    }
    assert theirs == {True, False}, "it depends on the order, and so on hashes"

    clauses = [
        clause("driver", "car/speed", [MARKETING]),
        clause("driver", "car/position", [MARKETING], (INDIVIDUALIZED,)),
    ]
    for order in permutations(clauses):
        found = FilterReach("#", order, INDIVIDUALIZED)
        assert not found.everywhere
        assert found.because == "driver's reservation of car/position prohibits marketing/individualized"


def test_2_a_strangers_reservation_opens_nothing() -> None:
    theirs = published.Store()
    theirs.reserve("car/position", (frozenset([OPERATIONS]), NONE))
    assert not theirs.allowed("car/position", ADVERTISING)
    theirs.reserve("#", (frozenset([ADVERTISING]), NONE))
    assert theirs.allowed("car/position", ADVERTISING)

    clauses = [clause("driver", "car/position", [OPERATIONS]), clause("mallory", "#", [ADVERTISING])]
    for order in permutations(clauses):
        decision = decide(order, ADVERTISING)
        assert not decision.allowed
        assert decision.because == "driver's reservation of car/position does not allow advertising"
    assert decide([*clauses, clause("driver", "#", [ADVERTISING])], ADVERTISING).allowed, (
        "the owner's own does"
    )


@pytest.mark.parametrize("store", STORES)
def test_4_a_filter_covers_the_level_that_it_hangs_from(store: type[Reservations]) -> None:
    theirs = published.Store()
    theirs.reserve("car/#", (frozenset([OPERATIONS]), NONE))
    assert theirs.allowed("car", ADVERTISING), "`car/#` was not found to match `car`"

    ours = store()
    ours.put(clause("driver", "car/#", [OPERATIONS]))
    assert not ours.decide("car", ADVERTISING).allowed
    assert not ours.decide("car/7", ADVERTISING).allowed
    assert ours.decide("cars", ADVERTISING).allowed
    assert not FilterReach("+", ours.intersecting("+"), ADVERTISING).everywhere


def test_5_regular_expressions_fail_match_too_much_and_hang() -> None:
    with pytest.raises(re.error):
        published.matches("a(/+", "a(/b")
    assert published.matches("a.c/+", "abc/d"), "another topic than the reserved one"
    few, more = (_seconds(lambda n=n: published.matches("(x*)*y/+", "x" * n)) for n in (12, 16))
    assert more > 3 * few, "four characters more, sixteen times as long"


@pytest.mark.parametrize("store", STORES)
def test_5_filters_are_no_regular_expressions(store: type[Reservations]) -> None:
    ours = store()
    ours.put(clause("driver", "a(/+", [OPERATIONS]))
    ours.put(clause("driver", "a.c/+", [OPERATIONS]))
    ours.put(clause("driver", "(x*)*y/+", [OPERATIONS]))
    assert not ours.decide("a(/b", ADVERTISING).allowed
    assert not ours.decide("a.c/d", ADVERTISING).allowed
    assert ours.decide("abc/d", ADVERTISING).allowed
    assert _seconds(lambda: ours.decide("x" * 1000, ADVERTISING)) < 0.1


def test_6_a_wildcard_is_spelled_by_a_whole_level() -> None:
    assert published.spelled("plant/HASHRATE") == "plant/#RATE"
    assert filter_of("plant/HASHRATE") == "plant/HASHRATE"
    assert filter_of("SURPLUS/PLUS/HASH") == "SURPLUS/+/#"


@pytest.mark.parametrize("store", STORES)
def test_7_nothing_allowed_can_be_said(store: type[Reservations]) -> None:
    theirs = published.Store()
    theirs.reserve("car/#", (frozenset([OPERATIONS]), NONE))
    theirs.reserve("car/#", (NONE, NONE))
    assert theirs.allowed("car/7", ADVERTISING), "to allow nothing removed the reservation"

    ours = store()
    ours.put(clause("driver", "car/#", [OPERATIONS]))
    ours.put(clause("driver", "car/#", []))
    assert not any(ours.decide("car/7", purpose).allowed for purpose in WORDS)
    assert ours.remove("driver", "car/#")
    assert all(ours.decide("car/7", purpose).allowed for purpose in WORDS)


def _seconds(call: object) -> float:
    assert callable(call)
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
    return best
