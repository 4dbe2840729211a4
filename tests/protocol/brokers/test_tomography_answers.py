"""Answers, and what follows from them: nothing that the definitions do not say."""

from __future__ import annotations

from random import Random

import pytest
from filter_examples import Brute
from hypothesis import given as drawn_from
from hypothesis import strategies as st
from tomography_examples import (
    KEYS,
    NOW,
    SERVICE,
    WHOLE,
    asked,
    drawn_sides,
    names,
    question,
    several,
    wanted,
)

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.tomography import answer_cache as limits
from hushcast_protocol.brokers.tomography.answer_cache import AnswerCache
from hushcast_protocol.brokers.tomography.inference import follows, is_transitive
from hushcast_protocol.brokers.tomography.questions import TomographyAnswer, answered, read_answer

F, G, H = wanted((0, 9)), wanted((2, 5)), wanted((3, 3))
assert covers(F, G)
assert covers(G, H)


def brute(**sources: int) -> Brute:
    held = Brute()
    for name, number in sources.items():
        for at in range(number):
            held.insert({"f": F, "g": G, "h": H, "other": wanted(None, (1, 2))}[name], (name, at))
    return held


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        (AnonymityCondition.SOURCE, brute(f=1, g=5)),
        (AnonymityCondition.IMMEDIATE_SUCCESSOR, brute(f=1, g=1, h=5)),
        (AnonymityCondition.IMMEDIATE_PREDECESSOR_SUCCESSOR, brute(f=5, g=1)),
        (AnonymityCondition.IMMEDIATE_PREDECESSOR, brute(f=5, g=5)),
    ],
)
def test_four_conditions_are_not_transitive_by_counterexample(
    condition: AnonymityCondition, held: Brute
) -> None:
    """What covers an anonymous filter may not be: of Definition 1 the paper says otherwise."""
    assert held.level(G, condition) > held.level(F, condition)
    assert not is_transitive(condition)


def test_definitions_3_and_4_are_not_transitive_below_something_either() -> None:
    """f stands under p alone, g under f and q: the crowd under q is none of f's."""
    p, f = wanted((0, 50), (0, 3)), wanted((0, 20), (0, 3))
    q, g = wanted((10, 90)), wanted((10, 20), (0, 3))
    assert not covers(q, f)
    held = Brute()
    for given in (p, f, q, g):
        held.insert(given, "one")
    for at in range(5):
        held.insert(wanted((60 + at, 60 + at)), at)
    for condition in (
        AnonymityCondition.IMMEDIATE_PREDECESSOR_SUCCESSOR,
        AnonymityCondition.IMMEDIATE_PREDECESSOR,
    ):
        assert held.level(g, condition) >= 5
        assert held.level(f, condition) == 1


@several
@drawn_from(st.integers(0, 2**32))
def test_under_definition_2_whatever_covers_a_filter_is_at_least_as_anonymous(seed: int) -> None:
    random = Random(seed)
    held = Brute()
    for _ in range(12):
        held.insert(Filter(WHOLE.topic, drawn_sides(random)), random.randrange(8))
    filters = [Filter(WHOLE.topic, drawn_sides(random)) for _ in range(4)] + list(held.held)
    for wide in filters:
        for narrow in filters:
            if covers(wide, narrow):
                assert held.level(wide, AnonymityCondition.SUCCESSOR) >= held.level(
                    narrow, AnonymityCondition.SUCCESSOR
                )


def test_what_follows_for_another_k_another_spread_and_a_part_of_the_way() -> None:
    yes = asked(question(F, 5, spread=2))
    for other, said in [
        (question(F, 5, spread=2), True),
        (question(F, 4, spread=1), True),
        (question(F, 6, spread=2), None),
        (question(F, 5, spread=3), None),
        (question(F, 5, spread=2, target=KEYS["c"]), True),
        (question(F, 5, spread=2, target=KEYS["e"]), None),
        (question(F, 5, spread=2, origin=KEYS["b"]), None),
        (question(F, 5, AnonymityCondition.IMMEDIATE_SUCCESSOR, spread=2), None),
        (question(F, 5, spread=2, is_real=True), None),
    ]:
        assert follows(yes, True, asked(other)) is said
    no = asked(question(F, 5, spread=2))
    for other, said in [
        (question(F, 5, spread=2), False),
        (question(F, 6, spread=3), False),
        (question(F, 4, spread=2), None),
        (question(F, 5, spread=1), None),
        (question(F, 5, spread=2, target=KEYS["e"]), False),
        (question(F, 5, spread=2, target=KEYS["c"]), None),
    ]:
        assert follows(no, False, asked(other)) is said


@pytest.mark.parametrize("condition", list(AnonymityCondition))
def test_what_follows_by_covering_follows_under_definition_2_alone(condition: AnonymityCondition) -> None:
    is_two = condition is AnonymityCondition.SUCCESSOR
    wide, narrow = asked(question(F, 3, condition)), asked(question(G, 3, condition))
    assert follows(narrow, True, wide) is (True if is_two else None)
    assert follows(wide, False, narrow) is (False if is_two else None)
    assert follows(wide, True, narrow) is None
    assert follows(narrow, False, wide) is None


def test_who_is_behind_the_filter_itself_matters_where_it_counts() -> None:
    few, many = names(1), names(1, 2)
    for condition in AnonymityCondition:
        with_few = asked(question(F, 3, condition, sources=few))
        with_many = asked(question(F, 3, condition, sources=many))
        does_count = condition not in (AnonymityCondition.SUCCESSOR, AnonymityCondition.IMMEDIATE_SUCCESSOR)
        assert follows(with_few, True, with_many) is True
        assert follows(with_many, True, with_few) is (None if does_count else True)
        assert follows(with_few, False, with_many) is (None if does_count else False)


def test_a_cache_finds_what_it_has_and_what_follows_until_it_is_over() -> None:
    cache = AnswerCache()
    cache.put(asked(question(G, 5)), True, NOW + 10)
    found = cache.find(asked(question(G, 5)), NOW)
    assert found is not None
    assert (found.is_anonymous, found.until, found.is_derived) == (True, NOW + 10, False)
    found = cache.find(asked(question(F, 4)), NOW)
    assert found is not None
    assert found.is_derived
    assert cache.find(asked(question(H, 5)), NOW) is None
    assert cache.find(asked(question(F, 4)), NOW + 10) is None
    assert len(cache) == 0
    plain = AnswerCache(transitive=False)
    plain.put(asked(question(G, 5)), True, NOW + 10)
    assert plain.find(asked(question(F, 5)), NOW) is None
    assert plain.find(asked(question(G, 5)), NOW) is not None


def test_a_cache_keeps_the_newest_answer_and_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CACHED", 3)
    cache = AnswerCache()
    cache.put(asked(question(F, 5)), True, NOW + 10)
    cache.put(asked(question(F, 5)), False, NOW + 10)
    assert len(cache) == 1
    found = cache.find(asked(question(F, 5)), NOW)
    assert found is not None
    assert not found.is_anonymous
    for k in range(6, 10):
        cache.put(asked(question(F, k)), False, NOW + 10)
    assert len(cache) == 3
    assert cache.find(asked(question(F, 5)), NOW) is None
    monkeypatch.setattr(limits, "MAX_LOOKED_AT", 1)
    cache = AnswerCache()
    cache.put(asked(question(H, 5)), True, NOW + 10)
    cache.put(asked(question(wanted((80, 90)), 5)), True, NOW + 10)
    assert cache.find(asked(question(F, 5)), NOW) is None


@several
@drawn_from(st.integers(0, 2**32))
def test_a_cache_never_says_what_is_not_so(seed: int) -> None:
    random = Random(seed)
    held = Brute()
    for _ in range(10):
        held.insert(Filter(WHOLE.topic, drawn_sides(random)), random.randrange(6))
    cache = AnswerCache()
    for _ in range(25):
        given, condition = Filter(WHOLE.topic, drawn_sides(random)), random.choice(list(AnonymityCondition))
        one = asked(question(given, random.randrange(1, 7), condition))
        # One broker on the way, whose crowd stays: any other answer than its own would be wrong.
        truth = held.level(given, condition) >= one.question.k
        found = cache.find(one, NOW)
        assert found is None or found.is_anonymous is truth
        cache.put(one, truth, NOW + 1)


def test_an_answer_is_the_services_to_this_question_and_in_time() -> None:
    one, key = question(F, 3), SERVICE.public()
    signed = answered(SERVICE, TomographyAnswer(one, True, int(NOW) + 10))
    assert read_answer(signed, key, one, NOW).is_anonymous
    for args in [
        (signed, KEYS["c"], one, NOW),
        (signed, key, question(F, 2), NOW),
        (signed, key, one, NOW + 10),
        (Signed(signed.body, bytes(64)), key, one, NOW),
        (Signed(signed.body[:-1], signed.signature), key, one, NOW),
    ]:
        with pytest.raises(PeerError):
            read_answer(*args)
