"""Confirmations: only what was carried out counts, and who passes them on learns nothing from them."""

from __future__ import annotations

import os
import sys
from random import Random

import pytest
from confirming import LYING, RELAYS, SILENT, TREE, Telling, play, sealed
from core_examples import parcel_key, parcel_to, properties, relay_id, stream
from hypothesis import given
from hypothesis import strategies as st
from steps import one_step

from hushcast_protocol.overlay.confirmations import (
    LEAST_SEALED,
    MAX_CONFIRMATIONS,
    confirm,
    expected,
    heard,
    room,
)
from hushcast_protocol.overlay.leases import Withdraw
from hushcast_protocol.overlay.parcels import MAX_PARCEL, seal_parcel
from hushcast_protocol.overlay.tree import Tree, plan

WORD = b"w" * 16


def below(relay: bytes) -> set[bytes]:
    return {other for other in RELAYS if relay in TREE.way(other)}


def told(number: int = 0, manner: dict[bytes, int] | None = None) -> Telling:
    return Telling(number, manner or {}, Random(number).randrange)


def test_all_that_carried_it_out_are_counted() -> None:
    assert told().confirmed == set(RELAYS)


@pytest.mark.parametrize("silent", range(len(RELAYS)))
def test_who_is_silent_is_not_counted_nor_who_was_told_by_it(silent: int) -> None:
    assert told(0, {RELAYS[silent]: SILENT}).confirmed == set(RELAYS) - below(RELAYS[silent])


@properties(100)
@given(st.integers(0, 2**32))
def test_liars_who_work_together_have_nobody_counted_who_was_not_told(seed: int) -> None:
    play(Random(seed).randrange)


def test_what_confirms_one_telling_confirms_no_other() -> None:
    """Another attempt, installation or day: each word is drawn anew."""
    first = told(0)
    for branch in sealed(1).values():
        assert not any(branch.confirmed(said) for said in first.said.values())


def test_who_passes_on_finds_nothing_that_a_colluder_below_knows() -> None:
    """All that is known at the bottom, against all that an honest relay between hands up."""
    telling = told()
    for relay in RELAYS:
        bottom, *above = TREE.way(relay)
        known = {telling.opened[bottom].word, *telling.said[bottom]}
        for passing in above:
            assert known.isdisjoint(telling.said[passing])
            tried = {found for one in telling.said[passing] for found in confirm(one, known, 0, stream())}
            assert tried.isdisjoint(telling.said[passing]), "nor with what the relay between says of itself"


def test_as_many_answer_whoever_is_silent() -> None:
    for passing in (relay for relay in RELAYS if TREE.children.get(relay)):
        lost = dict.fromkeys(below(passing) - {passing}, SILENT)
        assert len(told(0, lost).said[passing]) == len(told().said[passing]) >= len(below(passing))


def test_too_many_count_as_none() -> None:
    said = confirm(WORD, (), 10 * LEAST_SEALED, stream())
    assert heard(said, 10 * LEAST_SEALED) == said
    assert heard((*said, WORD), 10 * LEAST_SEALED) == ()


def test_a_liar_at_the_top_has_itself_counted_at_most_with_all_below_silent() -> None:
    top = TREE.children[None][0]
    for seed in range(50):
        lost = dict.fromkeys(below(top), SILENT) | {top: LYING}
        telling = Telling(0, lost, Random(seed).randrange)
        assert telling.confirmed - {top} == set(RELAYS) - below(top)


def test_no_parcel_is_smaller_than_the_least() -> None:
    smallest = parcel_to(0, Withdraw(WORD), epoch=0)
    assert len(seal_parcel(smallest, parcel_key(0).public(), stream())) >= LEAST_SEALED
    assert room(MAX_PARCEL) == MAX_CONFIRMATIONS


def test_the_largest_answer_is_one_step_and_half_of_its_parcel() -> None:
    most = tuple(os.urandom(16) for _ in range(MAX_CONFIRMATIONS - 1))
    with one_step():
        said = confirm(WORD, heard(most, MAX_PARCEL), MAX_PARCEL, os.urandom)
    assert len(said) == MAX_CONFIRMATIONS
    held = sys.getsizeof(said) + sum(map(sys.getsizeof, said))
    assert held < MAX_PARCEL / 2, "it takes less than the parcel that it answers, which is weighed"
    with one_step():
        confirm(WORD, (), MAX_PARCEL, os.urandom)


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_each_relay_of_a_large_tree_is_awaited_at_its_top(depth: int) -> None:
    tree = plan([number.to_bytes(32, "big") for number in range(2000)], depth, bytes(32))
    awaited = expected(tree, {relay: relay[-16:] for relay in tree.parents})
    assert set(awaited) == set(tree.children[None])
    for top, relays in awaited.items():
        assert all(tree.way(relay)[-1] == top for relay in relays.values())
    assert sorted(relay for relays in awaited.values() for relay in relays.values()) == sorted(tree.parents)


def test_an_empty_tree_awaits_nothing() -> None:
    assert expected(Tree({}), {}) == {}


def test_confirmations_do_not_change() -> None:
    tree = Tree({relay_id(0): None, relay_id(1): relay_id(0)})
    (own,) = confirm(WORD, (), LEAST_SEALED, stream())
    assert own.hex() == "ff7423c06c6b810770147a86adecdb87"
    (awaited,) = expected(tree, {relay_id(0): b"v" * 16, relay_id(1): WORD}).values()
    passed_on = next(one for one, relay in awaited.items() if relay == relay_id(1))
    assert passed_on.hex() == "1a37d8c6a5f86d6496fa642e8cac80df"
    assert passed_on in confirm(b"v" * 16, (own,), 2 * LEAST_SEALED, stream())
