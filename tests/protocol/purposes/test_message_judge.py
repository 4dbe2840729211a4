"""The judge of messages: reservations and a message's own terms, decided together, without a gateway."""

from __future__ import annotations

import pytest

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.purposes.clauses import reserve
from hushcast_protocol.purposes.message_judge import MessageJudge
from hushcast_protocol.purposes.message_purposes import OPENED, Pairs, UnreadablePurposes
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.reservations import ReservationTree
from hushcast_protocol.purposes.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["operations/billing", "operations/routing", "research"])
BILLING, ROUTING, RESEARCH = map(Purpose, ("operations/billing", "operations/routing", "research"))


def judge(*reserved: tuple[str, str], strict: bool = False) -> MessageJudge:
    """Return one that goes by reservations of the topic `t`: what they allow, and what they prohibit."""
    store = ReservationTree()
    for number, (aip, pip) in enumerate(reserved):
        store.put(reserve(f"o{number}", "t", aip.split(), pip.split(), VOCABULARY))
    return MessageJudge(store, VOCABULARY, strict)


def allowed(
    one: MessageJudge,
    *given: tuple[str, str],
    granted: frozenset[str] | None = None,
    is_decided: bool = False,
) -> set[str]:
    return {purpose for purpose in VOCABULARY if one.may_be_used("t", given, purpose, granted, is_decided)}


@pytest.mark.parametrize("given", [(), (("aip", "operations"),), (("pip", "operations/billing"),)])
def test_what_a_message_says_of_itself_only_narrows_what_is_reserved(given: Pairs) -> None:
    two = ("operations", "operations/routing"), ("operations research", "")
    for strict in (False, True):
        for reserved in ((("operations", ""),), two):
            one = judge(*reserved, strict=strict)
            assert allowed(one, *given) <= allowed(one)
    assert allowed(judge(), ("pip", "operations/billing")) == {"operations", ROUTING, RESEARCH}


def test_one_reading_decides_for_all_readers_of_a_purpose_until_reservations_change() -> None:
    store = ReservationTree()
    one = MessageJudge(store, VOCABULARY, False)
    assert one.may_be_used("t", (), BILLING, None, False)
    store.put(reserve("o", "t", ["research"], [], VOCABULARY))
    one.forget()
    assert [one.may_be_used("t", (), each, None, False) for each in (BILLING, RESEARCH)] == [False, True]
    one.go_by(VOCABULARY, True)
    assert one.may_be_used("t", (), RESEARCH, None, False)
    assert not one.may_be_used("elsewhere", (), RESEARCH, None, False), "nobody reserved it"


def test_terms_that_mean_nothing_let_nobody_have_it_and_nothing_leave() -> None:
    one = judge()
    for given in ((("reserve", "remove"),), (("aip", "opertions"),)):
        with pytest.raises((UnreadablePurposes, UsageError)):
            one.check("car", "t", given)
        assert allowed(one, *given, is_decided=True) == set()
        assert not one.may_leave("t", given, "")
    one.check("car", "t", (("aip", "operations"), ("else", "x")))


def test_what_came_sealed_is_for_what_it_opened_for_and_is_granted_still() -> None:
    one, opened = judge(), (OPENED, "operations/#,research")
    assert allowed(one, opened) == {"operations", BILLING, ROUTING, RESEARCH}
    assert allowed(one, opened, granted=frozenset({"research"})) == {RESEARCH}
    assert allowed(one, opened, (OPENED, "research")) == {RESEARCH}, "a client that writes it itself narrows"
    assert not one.may_be_used("t", (opened,), None, None, False)


def test_what_leaves_unsealed_is_for_what_its_readers_use_it_for() -> None:
    one = judge(("operations", ""))
    assert one.may_leave("t", (), "operations/billing")
    assert not one.may_leave("t", (), "research")
    assert not one.may_leave("t", (), ""), "what is reserved is not for anything"
    assert one.may_leave("elsewhere", (), "")
