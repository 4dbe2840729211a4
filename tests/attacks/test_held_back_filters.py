"""A client of an edge broker, a stranger to its others, wants to read a filter that `--k` holds back there.

It may have some clients, subscribe to what it likes under any terms, and compares what it hears with what it
would hear if the filter were not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import MAX_NEIGHBOURS
from hushcast_protocol.brokers.edge_subscriptions import BogusMeans
from hushcast_protocol.brokers.exposure import OPEN, Exposure
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic

CLINIC = make_topic("clinic", ["age:0..120:1"])
K = 5
WAYS = ("refuse", "wait", "generalise", "bogus")
ASKED_K = (2, 5, 65)
BOXES = ((20, 60), (33, 34), (33, 33), (0, 0))


def ages(low: int, high: int) -> Filter:
    return Filter.of(Interest(CLINIC, parse_where(f"age in [{low}, {high}]", CLINIC.attributes)))


VICTIM = ages(33, 34)


class EdgeBroker:
    """One with a filter that is held back, or without, and with somebody who hides nothing, elsewhere."""

    def __init__(self, is_there: bool) -> None:
        self.exposure = Exposure(means=BogusMeans(sources=True))
        self.exposure.subscribe("reader", bytes(16), ages(100, 119), OPEN)
        self.number = 0
        if is_there:
            self.exposure.subscribe(
                "victim", bytes(16), VICTIM, AnonymityTerms(K, AnonymityCondition.SOURCE, "wait")
            )

    def heard(
        self, strangers: int, asked: Filter, terms: AnonymityTerms, decoy: tuple[Filter, AnonymityTerms]
    ) -> object:
        """Return all that a stranger hears, whose other clients subscribe to a decoy first."""
        told: dict[object, list[str]] = {}
        mine = [(f"stranger {at}", *decoy) for at in range(strangers - 1)] + [("stranger", asked, terms)]
        for name, *wanted in mine:
            changes = self.exposure.subscribe(name, bytes(16), *wanted)
            told[name] = [repr(each) for who, each in changes.told.items() if who[0] == name]
        while self.exposure.is_waiting:
            for (name, _), each in self.exposure.advance().told.items():
                if name in told:
                    told[name].append(repr(each))
        is_kept = {name: self.exposure.standing(name, bytes(16)) is not None for name in told}
        costs = {name: self.exposure.filters(name) for name in told}
        for name in told:
            self.exposure.forget(name)
        return told, is_kept, costs


def questions(
    condition: AnonymityCondition,
) -> Iterator[tuple[Filter, AnonymityTerms, tuple[Filter, AnonymityTerms]]]:
    """Yield what is asked, and what other clients of the same stranger subscribe to beside it."""
    for box, k, way in product(BOXES, ASKED_K, WAYS):
        asked = AnonymityTerms(k, condition, way)  # type: ignore[arg-type]
        for decoy in (ages(*box), ages(0, 120), ages(box[1], box[1])):
            yield ages(*box), asked, (decoy, OPEN)
            yield ages(*box), asked, (decoy, AnonymityTerms(K, AnonymityCondition.SOURCE, "wait"))


@pytest.mark.slow
@pytest.mark.parametrize("strangers", [1, 2, K - 2])
@pytest.mark.parametrize("condition", AnonymityCondition)
def test_nothing_that_is_heard_tells_whether_it_is_there(
    condition: AnonymityCondition, strangers: int
) -> None:
    """So long as whoever asks has fewer clients than the victim wants to hide among, itself included."""
    there, gone = EdgeBroker(is_there=True), EdgeBroker(is_there=False)
    for question in questions(condition):
        assert there.heard(strangers, *question) == gone.heard(strangers, *question), question


LINE = make_topic("line", ["a:0..65535"])


def lines(low: int, high: int) -> Filter:
    return Filter(LINE, ((low, high),))


@pytest.mark.slow
def test_nor_does_it_displace_a_filter_where_only_so_many_are_looked_at() -> None:
    """A stranger fills what is looked at for a level, all but for the last place."""
    heard = []
    for is_there in (True, False):
        exposure = Exposure()
        if is_there:
            exposure.subscribe(
                "victim", bytes(16), lines(0, 900), AnonymityTerms(K, AnonymityCondition.SOURCE, "wait")
            )
        for at in range(MAX_NEIGHBOURS + 1):
            exposure.subscribe("one", at.to_bytes(16, "big"), lines(200 * at, 200 * at + 190 - at), OPEN)
        exposure.subscribe("two", bytes(16), lines(60_000, 60_010), OPEN)
        asked = lines(0, 65_000)
        exposure.subscribe(
            "asks", bytes(16), asked, AnonymityTerms(2, AnonymityCondition.IMMEDIATE_SUCCESSOR, "wait")
        )
        while exposure.is_waiting:
            exposure.advance()
        heard.append(exposure.is_shown("asks", bytes(16)))
    assert heard == [False, False]


def test_who_is_all_but_one_of_a_crowd_learns_of_the_one() -> None:
    """The price of an answer, which `docs/threat-model.md` tells: no count of people can do without."""
    there, gone = EdgeBroker(is_there=True), EdgeBroker(is_there=False)
    waits = AnonymityTerms(K, AnonymityCondition.SOURCE, "wait")
    asked = VICTIM, waits, (VICTIM, waits)
    assert there.heard(K - 2, *asked) == gone.heard(K - 2, *asked)
    assert there.heard(K - 1, *asked) != gone.heard(K - 1, *asked)
