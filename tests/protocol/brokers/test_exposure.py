"""What an edge broker shows of its clients' filters: never one below its k, and no more than it takes."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from exposing import WAYS, play

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.edge_subscriptions import MAX_BOGUS, BogusMeans, SubscriptionKey
from hushcast_protocol.brokers.exposure import OPEN, Exposure
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic

TOPIC = make_topic("weather", ["a:0..99"])


def where(text: str) -> Filter:
    return Filter.of(Interest(TOPIC, parse_where(text, TOPIC.attributes)))


def terms(
    k: int, otherwise: Fallback = "wait", condition: AnonymityCondition = AnonymityCondition.SOURCE
) -> AnonymityTerms:
    return AnonymityTerms(k, condition, otherwise)


NAME = bytes(16)
HOME = where("a in [10, 20]")


@pytest.mark.slow
@pytest.mark.parametrize(("condition", "way"), [*product(AnonymityCondition, WAYS)])
@pytest.mark.parametrize(
    "minimum", [OPEN, AnonymityTerms(2, AnonymityCondition.SOURCE, "wait")], ids=["own k", "and the broker's"]
)
def test_no_filter_below_its_k_is_outside_whoever_comes_and_goes(
    condition: AnonymityCondition, way: Fallback, minimum: AnonymityTerms
) -> None:
    play(Random(f"{condition} {way}"), 60, condition, way, minimum)


@pytest.mark.slow
@pytest.mark.parametrize(("condition", "way"), [*product(AnonymityCondition, WAYS)])
def test_nor_is_one_of_which_the_network_is_not_known_to_have_enough(
    condition: AnonymityCondition, way: Fallback
) -> None:
    play(
        Random(f"{condition} {way}"),
        40,
        condition,
        way,
        AnonymityTerms(2, AnonymityCondition.SOURCE, "wait"),
        is_told=True,
    )


def test_who_asks_for_nothing_is_shown_at_once_and_withdrawn_when_gone() -> None:
    exposure = Exposure()
    assert exposure.subscribe("ann", NAME, HOME, OPEN).roots.shown == {HOME}
    assert not exposure.subscribe("bob", NAME, HOME, OPEN).roots.shown
    assert not exposure.unsubscribe("ann", NAME).roots.withdrawn
    assert exposure.unsubscribe("bob", NAME).roots.withdrawn == {HOME}
    assert exposure.unsubscribe("bob", NAME).roots.withdrawn == frozenset()


def test_a_filter_that_waits_is_shown_when_enough_have_come_and_withdrawn_when_one_leaves() -> None:
    exposure = Exposure()
    assert not exposure.subscribe("ann", NAME, HOME, terms(3)).roots.shown
    assert not exposure.subscribe("bob", NAME, HOME, terms(3)).roots.shown
    last = exposure.subscribe("eve", NAME, HOME, terms(3))
    assert last.roots.shown == {HOME}
    assert last.told["eve", NAME]
    exposure.advance()
    gone = exposure.unsubscribe("bob", NAME)
    assert gone.roots.withdrawn == {HOME}
    assert gone.told == {("ann", NAME): False, ("eve", NAME): False}


def test_one_who_comes_and_goes_does_not_show_a_filter_that_sank_each_time() -> None:
    exposure = Exposure()
    for name in ("ann", "bob", "eve"):
        exposure.subscribe(name, NAME, HOME, terms(3))
    assert exposure.unsubscribe("eve", NAME).roots.withdrawn == {HOME}
    assert not exposure.subscribe("eve", NAME, HOME, terms(3)).roots.shown
    exposure.advance()
    assert not exposure.shown
    assert exposure.subscribe("cat", NAME, HOME, terms(3)).roots.shown == {HOME}, "at four all are shown"
    for name in ("ann", "bob", "cat", "eve"):
        exposure.forget(name)
    for name in ("ann", "bob"):
        exposure.subscribe(name, NAME, HOME, terms(3))
    assert exposure.subscribe("eve", NAME, HOME, terms(3)).roots.shown == {HOME}, (
        "nobody was there who could remember"
    )


def test_a_refused_subscription_is_not_kept_unless_what_is_shown_already_brings_its_messages() -> None:
    exposure = Exposure()
    assert not exposure.subscribe("ann", NAME, HOME, terms(2, "refuse")).roots.shown
    assert exposure.standing("ann", NAME) is None
    assert len(exposure) == 0
    exposure.subscribe("bob", NAME, where("a in [0, 50]"), OPEN)
    assert not exposure.subscribe("ann", NAME, HOME, terms(2, "refuse")).roots.shown
    standing = exposure.standing("ann", NAME)
    assert standing is not None
    assert standing.shown == where("a in [0, 50]")


def test_a_wider_filter_is_shown_until_the_own_one_has_enough_behind_it() -> None:
    exposure = Exposure()
    exposure.subscribe("ann", NAME, HOME, terms(2, "generalise"))
    assert exposure.shown == set()
    exposure.subscribe("bob", NAME, where("a in [15, 25]"), terms(2, "generalise"))
    exposure.advance()
    assert exposure.shown == {where("a in [10, 25]")}
    for name in ("cat", "dan"):
        exposure.subscribe(name, NAME, HOME, OPEN)
    exposure.advance()
    assert HOME in exposure.shown


SERVED = BogusMeans(sources=True)


def test_bogus_sources_cost_and_are_bounded() -> None:
    exposure = Exposure(means=SERVED)
    assert exposure.subscribe("ann", NAME, HOME, terms(4, "bogus")).roots.shown == {HOME}
    standing = exposure.standing("ann", NAME)
    assert standing is not None
    assert standing.bogus == 3
    assert exposure.filters("ann") == 4
    assert not exposure.subscribe("bob", NAME, where("a = 99"), terms(MAX_BOGUS + 2, "bogus")).roots.shown
    exposure.subscribe("cat", NAME, HOME, OPEN)
    exposure.advance()
    standing = exposure.standing("ann", NAME)
    assert standing is not None
    assert standing.bogus == 2
    assert exposure.filters("ann") == 4, "what it costs tells of nobody else"


def test_after_a_restart_what_may_be_shown_is_shown_and_nothing_else() -> None:
    exposure = Exposure()
    for name in ("ann", "bob"):
        exposure.load(name, NAME, HOME, terms(2, "refuse"))
    exposure.load("cat", NAME, where("a = 5"), terms(2, "refuse"))
    exposure.load("dan", NAME, where("a = 6"), OPEN)
    assert exposure.is_waiting
    assert exposure.advance().roots.shown == {HOME, where("a = 6")}
    assert not exposure.is_waiting
    assert exposure.standing("cat", NAME) is not None, "it was accepted once: it waits"


@pytest.mark.slow
def test_who_was_told_that_another_filter_brings_its_messages_hears_when_that_sinks_in_a_later_step() -> None:
    topic = make_topic("line", ["a:0..65535"])
    exposure, told = Exposure(), dict[SubscriptionKey, bool]()
    terms_there = AnonymityTerms(2, AnonymityCondition.SUCCESSOR, "wait")
    wide = [Filter(topic, ((at, 40_000 + at),)) for at in range(150)]
    for at, one in enumerate(wide):
        exposure.subscribe("wide", at.to_bytes(16, "big"), one, terms_there)
    for source in ("ann", "bob"):
        exposure.subscribe(source, NAME, Filter(topic, ((20_000, 20_010),)), OPEN)
    for at in range(2, 149, 3):
        inside = Filter(topic, ((at, 39_000 + at),))
        told |= exposure.subscribe("narrow", at.to_bytes(16, "big"), inside, terms(3)).told
    while exposure.is_waiting:
        told |= exposure.advance().told
    assert any(told.values())
    told |= exposure.unsubscribe("bob", NAME).told
    assert exposure.shown, "it takes more than a step"
    while exposure.is_waiting:
        told |= exposure.advance().told
    assert told
    assert not [name for name, is_shown in told.items() if is_shown and not exposure.is_shown(*name)]
