"""Advertisements: what goes up is what nothing covers, and what is confirmed is routed."""

from __future__ import annotations

from random import Random

import pytest
from advertising_world import CHILD, FILTERS, all_of, play
from broker_examples import KEY, MESSAGE, NARROW, TOPIC, WIDE
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.brokers import child_advertisements, filter_routes, parent_table, recent_forwards
from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements
from hushcast_protocol.brokers.clear_words import ShownFilter, from_outside, outside, shown, words
from hushcast_protocol.brokers.filter_routes import NOTHING, FilterRoutes, table_digest
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import Advertise
from hushcast_protocol.brokers.items import ItemChanges, of_roots
from hushcast_protocol.brokers.parent_table import ParentTable
from hushcast_protocol.brokers.recent_forwards import RecentForwards
from hushcast_protocol.brokers.roots import RootChanges

ONE, TWO = b"1" * 32, b"2" * 32


@pytest.mark.slow
@given(st.lists(st.integers(0, 2**16), max_size=120))
def test_what_is_confirmed_is_routed_whatever_breaks(moves: list[int]) -> None:
    script = iter(moves)
    left = [len(moves)]

    def pick(most: int) -> int:
        left[0] -= 1
        return next(script, 0) % most

    play(pick, lambda: left[0] > 0)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_for_longer_and_roots_change_two_at_a_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_routes, "ROOTS_AT_ONCE", 2)
    draw = Random(seed)
    left = [800]

    def more() -> bool:
        left[0] -= 1
        return left[0] > 0

    play(draw.randrange, more)


def many(count: int) -> list[Filter]:
    """Filters of which none covers another."""
    topics = [bytes([n // 256, n % 256]) + bytes(14) for n in range(count)]
    return [outside(ShownFilter(topic, (None,), (None,))) for topic in topics]


def test_a_whole_table_and_what_changes_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_table, "MAX_IN_ONE", 4)
    child, parent = ParentTable(), ChildAdvertisements()
    child.change(of_roots(RootChanges(frozenset(many(10)), frozenset())))
    all_of(child.linked(all_of(parent.begin(CHILD))))
    batch = child.next()
    assert [(len(said.add), said.whole) for said in batch] == [(4, "part"), (4, "part"), (2, "end")]
    for said in batch:
        list(parent.take(CHILD, said.frame(1)))
    assert not child.next()
    child.answered(True)
    assert len(parent.routes) == 10
    child.change(of_roots(RootChanges(frozenset(many(15)[10:]), frozenset(many(6)))))
    assert [(len(said.add), len(said.remove)) for said in child.next()] == [(4, 0), (1, 4), (0, 2)]


def test_a_parent_that_has_it_all_is_asked_whether_it_is_confirmed_and_then_told_nothing() -> None:
    child, parent = ParentTable(), ChildAdvertisements()
    version = child.change(of_roots(RootChanges(frozenset(many(3)), frozenset())))
    all_of(child.linked(table_digest(child.shown)))
    assert child.confirmed < version, "those above may not have it"
    (asked,) = child.next()
    assert asked.is_question
    assert not list(parent.take(CHILD, asked.frame(1)))
    child.answered(True)
    assert child.confirmed == version
    all_of(child.linked(table_digest(child.shown)))
    assert not child.next()
    assert child.confirmed == version


def test_what_is_said_once_more_is_said_until_it_is_accepted() -> None:
    child, parent = ParentTable(), ChildAdvertisements()
    first, *others = [from_outside(one) for one in many(3)]
    child.change(ItemChanges([first, *others], ()))
    all_of(child.linked(all_of(parent.begin(CHILD))))

    def said(accepted: bool = True) -> list[set[bytes]]:
        taken = [list(parent.take(CHILD, said.frame(1))) for said in child.next()]
        child.answered(accepted)
        return [{name for one in pieces for name in one.again} for pieces in taken]

    assert said() == [set()]
    child.change(ItemChanges([first], ()))
    assert said(accepted=False) == [{first.name}]
    assert said() == [set()], "all is told again, in which nothing is said once more"
    assert said() == [{first.name}]
    child.change(ItemChanges([first], ()))
    assert child.next(), "the link breaks"
    child.unlinked()
    all_of(child.linked(all_of(parent.begin(CHILD))))
    assert said() == [{first.name}], "though the parent has all"
    child.change(ItemChanges([first], ()))
    child.change(ItemChanges((), [first.name]))
    assert [(one.add, one.remove) for one in child.next()] == [((), (first.name,))]


def test_nothing_is_confirmed_while_there_is_no_link() -> None:
    child = ParentTable()
    all_of(child.linked(NOTHING))
    assert child.change(of_roots(RootChanges(frozenset(), frozenset()))) == child.confirmed
    child.unlinked()
    assert child.change(of_roots(RootChanges(frozenset(), frozenset()))) > child.confirmed


def test_advertisements_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = ChildAdvertisements()
    filters = [shown(KEY, WIDE), shown(KEY, NARROW)]
    monkeypatch.setattr(child_advertisements, "MAX_FILTERS_BELOW", 1)
    with pytest.raises(Refusal, match="quota"):
        list(parent.take(ONE, Advertise(1, tuple(filters), (), "no")))
    list(parent.take(ONE, Advertise(1, (filters[0],), (), "no")))
    list(parent.take(ONE, Advertise(2, (filters[0],), (), "no")))
    monkeypatch.setattr(child_advertisements, "MAX_FILTERS", 1)
    with pytest.raises(Refusal, match="quota"):
        list(parent.take(TWO, Advertise(1, (filters[0],), (), "no")))
    assert len(parent.routes) == 1
    assert parent.drop(ONE, 10) == [filters[0].name]
    list(parent.take(TWO, Advertise(2, (filters[0],), (), "no")))


def test_a_message_is_for_those_who_asked_for_it() -> None:
    table = FilterRoutes()
    wide, narrow = outside(shown(KEY, WIDE)), outside(shown(KEY, NARROW))
    table.put(ONE, b"a" * 16, wide)
    table.put(TWO, b"a" * 16, narrow)
    table.put(TWO, b"b" * 16, narrow)
    assert table.interested(MESSAGE.tokens) == {ONE, TWO}
    assert table.interested(words(KEY, TOPIC, {"kind": "flood", "lat": 3})) == {ONE}
    assert table.interested(words(KEY, TOPIC, {})) == set()
    table.take(TWO, b"a" * 16)
    assert table.interested(MESSAGE.tokens) == {ONE, TWO}, "it has asked under another name, too"
    table.put(TWO, b"b" * 16, wide)
    table.take(ONE, b"a" * 16)
    assert table.interested(words(KEY, TOPIC, {"kind": "flood", "lat": 3})) == {TWO}
    assert table.drop(TWO, 2) == [b"b" * 16]
    assert len(table) == 0
    assert table.children == set()
    assert not table._shapes
    assert not table._more
    with pytest.raises(DecodeError):
        table.interested((MESSAGE.tokens[0], b"\xff" * 16))


def test_filters_of_one_id_with_other_shapes_are_no_harm() -> None:
    routes = FilterRoutes()
    true = shown(KEY, WIDE)
    for number, places in enumerate(((None,), (15, None), (3, 3, 3), (None, 2))):
        lie = outside(ShownFilter(true.topic, places, (None,) * len(places)))
        routes.put(TWO, bytes([number]) * 16, lie)
    routes.put(ONE, bytes(16), outside(true))
    assert routes.interested(MESSAGE.tokens) == {ONE, TWO}
    number = (2**31).to_bytes(14, "big")
    assert ONE not in routes.interested((MESSAGE.tokens[0], b"\x01\x01" + number)), "off the grid"
    assert ONE not in routes.interested((MESSAGE.tokens[0], b"\x01\x02" + number)), "a label"


def test_digests_tell_tables_apart() -> None:
    names = [shown(KEY, WIDE).name, shown(KEY, NARROW).name]
    assert table_digest(names) == table_digest(reversed(names)) != table_digest(names[:1])
    assert table_digest(()) == NOTHING
    assert len(FILTERS) > 10


def test_what_was_passed_on_is_remembered_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_forwards, "MAX_PASSED_ON", 6)
    memory = RecentForwards()
    assert memory.fresh(b"m", {ONE}) == {ONE}
    assert memory.fresh(b"m", {ONE, TWO}) == {TWO}
    assert memory.fresh(b"m", {ONE, TWO}) == set()
    memory.fresh(b"n", {ONE, TWO})
    assert len(memory) == 6
    assert memory.knows(b"m")
    memory.fresh(b"o", set())
    assert not memory.knows(b"m")
    assert len(memory) == 4
