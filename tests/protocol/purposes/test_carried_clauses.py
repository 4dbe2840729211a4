"""Reservations as they travel: written and read back, by plain sets over two houses, and every tampering."""

from __future__ import annotations

from random import Random

import pytest
from carrying import carried
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.purposes.carried_reservations import (
    MAX_CARRIED,
    NOTHING,
    CarriedContent,
    known,
    read_carried,
    read_clauses,
    write_carried,
    write_clauses,
)
from hushcast_protocol.purposes.clauses import Clause, reserve
from hushcast_protocol.purposes.message_purposes import UnreadablePurposes
from hushcast_protocol.purposes.purpose_decision import decide
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.purpose_keys import epoch_start
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.sealed_messages import is_sealed
from hushcast_protocol.purposes.signed_vocabulary import issue
from hushcast_protocol.purposes.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["operations/billing", "operations/repair", "marketing/individualized", "research"])
NOW = epoch_start(2900) + 3600.0

SETS = st.frozensets(st.sampled_from(list(VOCABULARY)), max_size=3)
CLAUSES = st.lists(
    st.builds(Clause, st.sampled_from(["a", "b", "c"]), st.sampled_from(["t", "u"]), SETS, SETS)
)


def test_two_houses_agree_with_plain_sets() -> None:
    wrong, allowed = carried(20_000, seed=7)
    assert not +wrong
    assert allowed > 4_000


@given(CLAUSES, st.booleans())
def test_what_is_read_decides_as_what_was_written(clauses: list[Clause], strict: bool) -> None:
    text = write_clauses(clauses, strict)
    assert text is not None
    if not text:
        assert not clauses
        return
    came = known(read_clauses(text), VOCABULARY)
    for purpose in (None, *VOCABULARY):
        assert decide(came, purpose).allowed == decide(clauses, purpose, strict).allowed
    assert write_clauses(came, False) == text, "and in the same words"


@given(CLAUSES.filter(bool), st.randoms())
def test_neither_order_nor_names_of_owners_show(clauses: list[Clause], random: object) -> None:
    others = [
        Clause({"a": "z", "b": "y", "c": "x"}[one.owner], one.filter, one.aip, one.pip)
        for one in reversed(clauses)
    ]
    assert write_clauses(others, False) == write_clauses(clauses, False)


def test_what_nobody_is_left_to_answer_for_is_closed_under_strict_rules_alone() -> None:
    gone = Clause("a", "t", frozenset({Purpose("operations")}), frozenset(), of_nobody=True)
    assert write_clauses([gone], True) == write_clauses([], True) == NOTHING
    assert write_clauses([gone], False) == "operations|"
    assert write_clauses([], False) == ""


def test_what_is_prohibited_and_not_known_here_is_prohibited_with_what_is_above_it() -> None:
    here = Vocabulary(["marketing", "operations"])
    came = known(read_clauses("marketing,operations,research|marketing/individualized,research/cars"), here)
    allowed = {one for one in here if decide(came, one).allowed}
    assert allowed == {"operations"}


def test_of_two_texts_beside_one_message_owners_are_apart() -> None:
    both = (*read_clauses("operations|", 1), *read_clauses("marketing|", 2))
    assert not any(decide(both, purpose).allowed for purpose in VOCABULARY)


@pytest.mark.parametrize(
    "text",
    ["", " ", "operations", "|;", "Operations|", "operations,|", "a|b|c", "|" * 2, "x" * MAX_CARRIED + "|"],
)
def test_what_means_nothing_is_no_reservation(text: str) -> None:
    with pytest.raises(UnreadablePurposes):
        read_clauses(text)


def test_what_is_too_long_is_not_written() -> None:
    def clauses(count: int) -> list[Clause]:
        names = [f"p{number}/{'x' * 30}" for number in range(count)]
        return [reserve("a", "t", names, [], Vocabulary(names))]

    longest = write_clauses(clauses(116), False)
    assert longest is not None
    assert MAX_CARRIED - 40 < len(longest) <= MAX_CARRIED
    assert read_clauses(longest)
    assert write_clauses(clauses(117), False) is None


@pytest.mark.parametrize("is_update", [False, True])
def test_every_cut_and_every_flipped_bit_ends_in_something_readable_or_nothing(is_update: bool) -> None:
    one = CarriedContent("marketing,operations|marketing/individualized", b"payload", is_update)
    data = write_carried(one)
    assert read_carried(data) == one
    end = len(data) - len(one.content)
    assert all(read_carried(data[:cut]) is None for cut in range(end))
    assert read_carried(data[:end]) == one._replace(content=b"")
    for at in range(8 * end):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        found = read_carried(bytes(changed))
        assert found is None or found != one
        assert found is None or found.clauses or found.is_update, "a message is reserved, or it is none"


def test_only_an_update_says_that_nobody_reserves_any_more() -> None:
    assert read_carried(write_carried(CarriedContent("", b"", True))) == ("", b"", True)
    assert read_carried(write_carried(CarriedContent("", b"payload"))) is None


def test_who_does_not_know_of_them_takes_them_for_sealed_and_opens_none() -> None:
    data = write_carried(CarriedContent("operations|", b"payload" * 1_000))
    assert is_sealed(data)
    issued = issue(Seed(b"i" * 32), VOCABULARY, range(2900, 2902), 1, 0, int(NOW))
    keys = PurposeKeyring(issued, (), True, Random(1).randbytes)
    with pytest.raises(PurposeError):
        keys.open(data)
    sealed, _ = keys.seal(b"payload", (), False, NOW)
    assert read_carried(sealed) is None


def test_nothing_of_it_shows() -> None:
    assert repr(CarriedContent("operations|", b"payload")) == "CarriedContent(...)"
