"""Purposes: names, vocabularies, clauses, what decides, stores with their bounds, and the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import purposing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hushcast_protocol.base.budget import Budget, BudgetExhausted
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes import cached_reservations, reservations
from hushcast_protocol.purposes.cached_reservations import CachedReservationTree
from hushcast_protocol.purposes.clauses import Clause, of_message, reserve
from hushcast_protocol.purposes.filter_reach import FilterReach, effective
from hushcast_protocol.purposes.purpose_decision import DecisionReason, PurposeDecision, decide
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors, read_purpose
from hushcast_protocol.purposes.reservations import ReservationList, Reservations, ReservationTree
from hushcast_protocol.purposes.vocabulary import (
    MAX_PURPOSES,
    SHIPPED,
    Vocabulary,
    read_vocabulary,
    shipped,
)

WORDS = Vocabulary(["operations/billing", "operations/routing", "marketing/individualized", "research"])
BILLING, MARKETING, RESEARCH = Purpose("operations/billing"), Purpose("marketing"), Purpose("research")
INDIVIDUALIZED = Purpose("marketing/individualized")
STORES = [ReservationList, ReservationTree, CachedReservationTree]


def clause(owner: str, wanted: str, aip: str = "", pip: str = "") -> Clause:
    return reserve(owner, wanted, aip.split(), pip.split(), WORDS)


DRIVER = clause("driver", "cars/7/#", "operations marketing", "marketing/individualized")
CITY = clause("city", "cars/+/position", "operations research marketing")
FLEET = clause("driver", "cars/#", "research")


@pytest.mark.parametrize(
    "text", ["a", "operations/billing", "a-b_9/0", "/".join(["x" * 32] * 8)], ids=lambda text: text[:12]
)
def test_names(text: str) -> None:
    assert read_purpose(text) == text
    assert ancestors(Purpose(text))[0] == text
    assert len(ancestors(Purpose(text))) == text.count("/") + 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("Billing", "lower case: billing"),
        ("a//b", "a level is empty"),
        ("/a", "a level is empty"),
        ("a/", "a level is empty"),
        ("x" * 33, "has 33 characters"),
        ("/".join("x" * 9), "it has 9 levels"),
        ("a b", "levels are made of"),
        ("a\n", "levels are made of"),
        ("é", "levels are made of"),
        ("a/#", "levels are made of"),
        ("y" * 5000, "…"),
    ],
)
def test_what_is_no_name(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as told:
        read_purpose(text)
    assert len(str(told.value)) < 200


def test_what_stands_above_belongs_to_a_vocabulary() -> None:
    assert list(WORDS) == [
        *("marketing", "marketing/individualized"),
        *("operations", "operations/billing", "operations/routing", "research"),
    ]
    assert WORDS.roots == {"marketing", "operations", "research"}
    assert read_vocabulary("research # of ours\n\n#\n operations/billing\n" + "\n".join(WORDS)) == WORDS
    assert len({WORDS, Vocabulary(WORDS)}) == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("billing", "did you mean operations/billing?"),
        ("operation/billing", "did you mean operations/billing"),
        ("research/zzzzzzzzzzzzzzzzzzzzzz", "below research there is no such purpose"),
        ("zzzzzz", "'zzzzzz' is not in the vocabulary"),
    ],
)
def test_a_purpose_that_is_not_in_the_vocabulary_comes_with_what_was_meant(text: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint.replace("?", r"\?")):
        WORDS.read(text)


def test_vocabularies_are_bounded() -> None:
    Vocabulary(f"a/{number}" for number in range(MAX_PURPOSES - 1))
    with pytest.raises(UsageError, match="512"):
        Vocabulary(f"a/{number}" for number in range(MAX_PURPOSES))
    with pytest.raises(UsageError, match="one purpose at least"):
        Vocabulary([])
    with pytest.raises(UsageError, match="line 2: 'B' is no purpose"):
        read_vocabulary("a\nB\n")


def test_the_w3c_s_purposes_are_shipped_with_their_licence() -> None:
    found = shipped()
    assert len(found) == 95
    assert max(one.count("/") for one in found) == 3
    assert "marketing/advertising/personalised-advertising/targeted-advertising" in found
    lines = Path(reservations.__file__).with_name(SHIPPED).read_text().splitlines()
    assert sorted(found) == sorted(line for line in lines if line and not line.startswith("#")), (
        "all are listed"
    )
    assert any("WITHOUT WARRANTIES" in line or "AS IS" in line for line in lines)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("", "not a topic filter"),
        ("a/#/b", "not a topic filter"),
        ("a+", "not a topic filter"),
        ("a\x00", "not a topic filter"),
        ("$share/g/a", "behind"),
        ("/".join("a" * 33), "33 levels"),
        ("a" * 1025, "1024 characters"),
    ],
)
def test_what_cannot_be_reserved(wanted: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        clause("alice", wanted)


def test_a_purpose_of_a_reservation_is_one_of_the_vocabulary() -> None:
    with pytest.raises(UsageError, match="aip: 'reserch' is not in the vocabulary: did you mean research"):
        clause("alice", "a", "reserch")
    with pytest.raises(UsageError, match="pip: 'Research' is no purpose"):
        clause("alice", "a", "research", "Research")


@pytest.mark.parametrize(
    ("clauses", "purpose", "strict", "because"),
    [
        ([], BILLING, False, "yes: nobody reserved it"),
        ([], None, False, "yes: nobody reserved it"),
        ([], BILLING, True, "no: nobody reserved it, and the rules are strict"),
        ([], None, True, "no: nobody reserved it, and the rules are strict"),
        (
            [DRIVER],
            None,
            False,
            "no: driver's reservation of cars/7/# asks for a purpose, and none was given",
        ),
        ([DRIVER], BILLING, False, "yes: driver's reservation of cars/7/# allows operations"),
        (
            [DRIVER],
            INDIVIDUALIZED,
            False,
            "no: driver's reservation of cars/7/# prohibits marketing/individualized",
        ),
        ([DRIVER], RESEARCH, False, "no: driver's reservation of cars/7/# does not allow research"),
        ([DRIVER, FLEET], RESEARCH, False, "yes: driver's reservation of cars/# allows research"),
        (
            [DRIVER, FLEET, CITY],
            BILLING,
            False,
            "yes: city's reservation of cars/+/position allows operations; "
            "driver's reservation of cars/7/# allows operations",
        ),
        (
            [FLEET, DRIVER, clause("driver", "#", "research"), CITY],
            Purpose("advertising"),
            False,
            "no: city's reservation of cars/+/position does not allow advertising",
        ),
        (
            [FLEET, clause("driver", "+/#", "research")],
            MARKETING,
            False,
            "no: driver's reservation of +/#, or their 1 other here, does not allow marketing",
        ),
        (
            [clause(owner, "#", "research") for owner in "abcde"],
            RESEARCH,
            False,
            "yes: a's reservation of # allows research; b's reservation of # allows research; "
            "c's reservation of # allows research; so do 2 other owners",
        ),
        (
            [DRIVER, of_message("driver", "cars/7/position", None, ["operations"], WORDS)],
            BILLING,
            False,
            "no: the message that driver published prohibits operations",
        ),
    ],
)
def test_what_decides_is_told(
    clauses: list[Clause], purpose: Purpose | None, strict: bool, because: str
) -> None:
    for order in (clauses, clauses[::-1]):
        decision = decide(order, purpose, strict)
        assert f"{'yes' if decision.allowed else 'no'}: {decision.because}" == because


def test_who_allows_nothing_closes_the_topic_whatever_else_they_allow() -> None:
    wide, closed = clause("driver", "cars/7/#", "operations"), clause("driver", "cars/7/position")
    for narrow in (closed, clause("driver", "cars/7/position", "", "research")):
        decision = decide([wide, narrow], BILLING)
        assert (decision.allowed, decision.why) == (False, DecisionReason.NOTHING)
        assert decision.because == "driver's reservation of cars/7/position allows nothing"
        assert not FilterReach("cars/7/#", [wide, narrow], BILLING).everywhere
        assert FilterReach("cars/7/#", [wide, narrow], BILLING).somewhere
        assert not FilterReach("cars/7/position", [wide, narrow], BILLING).somewhere
        assert effective("cars/7/#", [wide, narrow], WORDS) == frozenset()
    assert decide([wide, clause("driver", "cars/7/position", "research")], BILLING).allowed, "they add up"


def test_who_is_gone_takes_away_and_opens_nothing() -> None:
    gone = replace(DRIVER, of_nobody=True)
    assert decide([gone], BILLING).allowed
    assert not decide([gone], None).allowed
    assert decide([gone], BILLING, strict=True).why is DecisionReason.STRICT
    assert decide([gone, CITY], BILLING, strict=True).allowed
    assert not FilterReach("cars/7/#", [gone], BILLING, strict=True).somewhere
    assert not FilterReach("cars/7/#", [gone, CITY], BILLING, strict=True).everywhere
    assert effective("cars/7/#", [gone], WORDS, strict=True) == frozenset()


def test_a_message_s_own_clause_only_narrows() -> None:
    own = of_message("driver", "cars/7/position", ["research"], [], WORDS)
    assert not decide([DRIVER, own], RESEARCH).allowed, "the reservation does not allow it"
    assert not decide([DRIVER, own], BILLING).allowed, "the message does not allow it"
    without = of_message("driver", "cars/7/position", None, [], WORDS)
    for purpose in WORDS:
        assert decide([DRIVER, without], purpose).allowed == decide([DRIVER], purpose).allowed
    assert not decide([own], None).allowed


@pytest.mark.parametrize("store", STORES)
def test_a_reservation_is_replaced_and_removed(store: type[Reservations]) -> None:
    held = store()
    held.put(DRIVER)
    held.put(clause("driver", "cars/7/#", "research"))
    held.put(CITY)
    assert len(held) == 2
    assert held.get("driver", "cars/7/#") == clause("driver", "cars/7/#", "research")
    assert not held.decide("cars/7/speed", BILLING).allowed
    assert held.decide("cars/7/speed", RESEARCH).allowed
    assert sorted(one.owner for one in held) == ["city", "driver"]
    assert sorted(one.owner for one in held.intersecting("cars/#")) == ["city", "driver"]
    assert [one.owner for one in held.covering("cars/8/position")] == ["city"]
    assert not held.remove("city", "cars/7/#")
    assert held.remove("driver", "cars/7/#")
    assert not held.remove("driver", "cars/7/#")
    assert held.decide("cars/7/speed", None).allowed
    assert held.get("driver", "cars/7/#") is None
    assert len(held) == 1


@pytest.mark.parametrize("store", STORES)
def test_stores_are_bounded(store: type[Reservations], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservations, "MAX_RESERVATIONS", 3)  # of which one owner has two at most
    held = store()
    held.put(clause("a", "1"))
    held.put(clause("a", "2"))
    assert not held.has_room_for("a", "3")
    assert held.has_room_for("a", "2")
    held.put(clause("a", "2", "research"))
    assert not held.has_room_for("b", "1")
    held.remove("a", "1")
    assert held.has_room_for("b", "3")
    held.put(clause("b", "3"))
    held.put(clause("b", "4"))
    held.put(clause("b", "5"))  # as the configuration, or an earlier version, has them
    assert len(held) == 4
    assert sorted(one.filter for one in held.intersecting("#")) == ["2", "3", "4", "5"]


@pytest.mark.slow
def test_three_stores_decide_as_plain_sets_do() -> None:
    wrong, allowed = purposing.judged(4000, seed=20)
    assert not +wrong
    assert 1000 < allowed < 3000


@pytest.mark.parametrize("fault", ["union", "merged", "no ancestors"])
def test_the_oracle_notices(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(clauses: Sequence[Clause], purpose: Purpose | None, strict: bool = False) -> PurposeDecision:
        right = decide(clauses, purpose, strict)
        if purpose is None or not clauses:
            return right
        aip, pip = frozenset[str](), frozenset[str]()
        for one in clauses:
            aip, pip = aip | one.aip, pip | one.pip
        if fault == "merged":
            pip = next(iter(clauses)).pip
        above = {purpose} if fault == "no ancestors" else set(ancestors(purpose))
        return PurposeDecision(bool(aip & above) and not pip & above, DecisionReason.ALLOWED, purpose, ())

    for module in (reservations, cached_reservations, purposing):
        monkeypatch.setattr(module, "decide", wrong)
    found, _ = purposing.judged(1000, seed=21)
    assert found["tree: false accept"] > 5


@pytest.mark.slow
def test_subscriptions_with_wildcards_are_decided_as_all_of_their_topics_are() -> None:
    for all_, every, some, any_ in purposing.subscriptions(250, seed=22):
        assert (all_, some) == (every, any_)


def test_an_owner_s_clauses_add_up_topic_by_topic_and_not_over_a_subscription() -> None:
    clauses = [clause("a", "x/1", "research"), clause("a", "x/2", "operations")]
    found = FilterReach("x/#", clauses, RESEARCH)
    assert (found.everywhere, found.somewhere) == (False, True)
    assert found.because == "a's reservation of x/2 does not allow research"
    assert FilterReach("x/1", clauses, RESEARCH).everywhere
    both = [*clauses, clause("a", "x/+", "research operations")]
    assert FilterReach("x/#", both, RESEARCH).everywhere
    assert not FilterReach("x/#", both, RESEARCH, strict=True).everywhere, "`x` itself is nobody's"
    assert FilterReach("x/+", both, RESEARCH, strict=True).everywhere
    assert effective("x/#", both, WORDS) == {
        "research",
        "operations",
        "operations/billing",
        "operations/routing",
    }
    assert effective("x/#", clauses, WORDS) == frozenset()
    for wanted, other in (("+", "/#"), ("/#", "+")):
        assert FilterReach(wanted, [clause("a", other)], RESEARCH).everywhere, (
            "they meet in the empty topic alone"
        )


def test_a_subscription_that_takes_too_long_to_decide_is_allowed_nowhere_for_sure() -> None:
    goods = [clause("a", "/".join("+" * n) + "/x/#", "research") for n in range(1, 12)]
    clauses = [clause("a", "#", "marketing"), *goods, clause("a", "y/#", "research")]
    found = FilterReach("#", clauses, RESEARCH)
    assert (found.everywhere, found.somewhere, found.is_whole) == (False, True, True)
    for purpose in (RESEARCH, MARKETING):
        found = FilterReach("#", clauses, purpose, budget=Budget(10))
        assert not found.everywhere
    found = FilterReach("#", clauses, RESEARCH, budget=Budget(10))
    assert (found.everywhere, found.somewhere, found.is_whole) == (False, True, False)
    assert "too many reservations" in found.because
    with pytest.raises(BudgetExhausted):
        effective("#", clauses, WORDS, budget=Budget(10))


def test_a_change_forgets_what_it_reaches_and_nothing_else() -> None:
    held = CachedReservationTree()
    held.put(DRIVER)
    held.put(CITY)
    topics = ["cars/7", "cars/7/speed", "cars/7/position", "cars/8/position", "$SYS/x", "home/kitchen"]
    for topic in topics:
        for purpose in (BILLING, None):
            held.decide(topic, purpose)
    assert held.remembered == 12
    assert held.decide("cars/7", BILLING) is held.decide("cars/7", BILLING)

    def dropped(clause: Clause) -> int:
        before = held.dropped
        held.put(clause)
        return held.dropped - before

    assert dropped(clause("driver", "cars/7/#", "research")) == 6
    assert dropped(clause("driver", "cars/7/#", "research")) == 0, "the same again"
    assert dropped(clause("city", "cars/+/position", "research")) == 2, "one more was forgotten before"
    assert dropped(clause("bob", "garden/#", "research")) == 0
    assert held.remembered == 4
    assert held.remove("bob", "garden/#")
    assert held.remembered == 4
    assert dropped(clause("bob", "#", "research")) == 2, "no topic that begins with $"
    assert held.decide("$SYS/x", BILLING).allowed
    assert not held.decide("home/kitchen", BILLING).allowed


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_reservations, "MAX_CACHED", 4)
    held = CachedReservationTree()
    held.put(clause("a", "#", "research"))
    for number in range(10):
        held.decide(f"t/{number}", RESEARCH)
        held.decide(f"t/{number}", BILLING)
    assert held.remembered == 4
    for topic in ("x" * 200, "/".join("a" * 11)):
        assert held.decide(topic, RESEARCH).allowed
    assert held.remembered == 4
    held.put(clause("b", "#"))
    assert held.remembered == 0
    assert held.dropped == 4
    assert not held.decide("t/9", RESEARCH).allowed


LEVEL = st.sampled_from(["a", "b", "", "$s"])
TOPICS = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS = st.builds(
    lambda levels, rest: "/".join([*levels, *rest]),
    st.lists(st.one_of(LEVEL, st.just("+")), max_size=3),
    st.sampled_from([["#"], ["a"], ["+"]]),
)
PURPOSES = st.one_of(st.none(), st.sampled_from(list(WORDS)))
SOME = st.frozensets(st.sampled_from(list(WORDS)), max_size=3)
MOVES = st.one_of(
    st.builds(Clause, st.sampled_from("ab"), FILTERS, SOME, SOME),
    st.tuples(st.sampled_from("ab"), FILTERS),
    st.tuples(TOPICS, PURPOSES, st.booleans()),
)


@pytest.mark.slow
@given(st.lists(MOVES, max_size=40), st.lists(TOPICS, min_size=1, max_size=3), PURPOSES)
def test_cached_is_tree_is_flat(moves: list[object], again: list[str], purpose: Purpose | None) -> None:
    three: list[Reservations] = [store() for store in STORES]
    for move in moves:
        if isinstance(move, Clause):
            for one in three:
                one.put(move)
        elif isinstance(move, tuple) and len(move) == 2:
            assert len({one.remove(*move) for one in three}) == 1
        elif isinstance(move, tuple):
            assert len({one.decide(*move) for one in three}) == 1
        for topic in again:
            assert len({one.decide(topic, purpose) for one in three}) == 1
    for topic in again:
        assert len({frozenset(one.covering(topic)) for one in three}) == 1
        assert len({frozenset(one.intersecting(topic)) for one in three}) == 1
    assert len({frozenset(one) for one in three}) == 1
