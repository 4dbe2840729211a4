"""Tables on encrypted words: who gets what, by how many rows, and that all who get something open it."""

from __future__ import annotations

import pytest
from full_world import DAY, FIGURE_2, World, key_of, word_of

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.full.group_action import GROUP, PADS, GroupAction
from hushcast_protocol.brokers.full.word_holder import WordHolder

ACTIONS = pytest.mark.parametrize("action", [PADS, GROUP], ids=["pads", "group"])
LAYERS = pytest.mark.parametrize("layers", [2, 3, 4])
ONE, TWO, THREE = (word_of(number) for number in (1, 2, 3))


def world(action: GroupAction, layers: int, *, aggregates: bool = True) -> World:
    found = World(FIGURE_2, action, layers, aggregates=aggregates)
    for name in ("A1", "A2", "B1", "A4", "B4"):
        found.want(name, ONE)
    for name in ("A3", "A4", "A5"):
        found.want(name, TWO)
    found.settle()
    return found


@ACTIONS
@LAYERS
@pytest.mark.parametrize("aggregates", [True, False])
def test_who_asked_and_nobody_else_gets_and_opens_it(
    action: GroupAction, layers: int, aggregates: bool
) -> None:
    one = world(action, layers, aggregates=aggregates)
    for words in ((ONE,), (TWO,), (THREE,), (THREE, TWO, ONE)):
        got = one.publish(*words)
        assert got.keys() == one.interested(*words)
        for name, found in got.items():
            assert [set(copy.tokens) for copy in found] == [one.nodes[name].own.keys() & set(words)]


@ACTIONS
@LAYERS
def test_brokers_have_one_row_a_word(action: GroupAction, layers: int) -> None:
    one = world(action, layers)
    assert one.rows_of("B1") == [{"A1", "A2"}]
    assert sorted(map(sorted, one.rows_of("B2"))) == [["A3", "A4", "A5"], ["A4"]]
    assert sorted(map(sorted, one.rows_of("B3"))) == [["B1", "B2"], ["B2"]]
    assert one.rows_of("C") == [{"B4"}, {"B4"}]


def test_a_row_stays_what_it_is_upward_whoever_leaves() -> None:
    one = World(FIGURE_2, GROUP, 3)
    for name in ("A1", "A2"):
        one.want(name, ONE)
    one.settle()
    before = dict(one.nodes["B1"].shown)
    one.unwant("A1", ONE)
    one.settle()
    assert one.nodes["B1"].shown == before
    assert one.publish(ONE).keys() == {"A2"}
    one.unwant("A2", ONE)
    one.settle()
    assert not one.nodes["B1"].shown
    assert not one.publish(ONE)


def test_who_comes_back_before_anything_is_said_is_not_said() -> None:
    one = World(FIGURE_2, PADS, 2)
    one.want("A1", ONE)
    one.settle()
    for move in (one.unwant, one.want):
        move("A1", ONE)
        one.hear("A1")
    changes = one.nodes["B1"].rows.take_changes()
    assert not changes.shown
    assert not changes.withdrawn
    assert one.publish(ONE).keys() == {"A1"}


def test_old_names_of_rows_that_became_one_are_known() -> None:
    """Under the name that its parent knows yet comes a message for all that are in the row now."""
    one = World(FIGURE_2, PADS, 2)
    b1 = one.nodes["B1"]
    one.want("A1", ONE)
    one.settle()
    one.want("A2", TWO)
    one.want("A2", ONE)
    one.hear("A2")
    one.hear("A2")
    paths = [path for _, path in b1.rows.missing()]
    for path in paths[1:]:  # A2's, of each of its items
        one.learn("B1", one.day, path)
    one.say("B1")  # two rows of one word; the parent has not heard of the second
    one.learn("B1", one.day, paths[0])
    one.say("B1")
    assert len(b1.rows.rows(one.day)) == 2
    assert one.publish(ONE).keys() == {"A1", "A2"}
    one.settle()
    assert one.publish(ONE).keys() == {"A1", "A2"}


def test_a_broker_that_starts_anew_says_what_differs_alone() -> None:
    one = world(GROUP, 3)
    one.unwant("A1", ONE)  # whose item goes up for A2's, too
    one.settle()
    b1 = one.nodes["B1"]
    one.restart("B1")
    assert b1.rows.take_changes() == ((), ())
    for item in set(b1.shown.values()) - set(b1.own.values()):
        b1.rows.recall(item)  # nor does it matter to hear it twice
    assert b1.rows.take_changes() == ((), ())
    assert one.publish(ONE).keys() == one.interested(ONE)
    # What its children withdrew meanwhile is withdrawn.
    one.unwant("A2", ONE)
    one.hear("A2")
    one.restart("B1")
    (gone,) = b1.rows.take_changes().withdrawn
    assert gone in b1.shown


def test_what_is_not_of_this_broker_is_not_recalled() -> None:
    one = world(PADS, 2)
    for name in ("B1", "C"):
        with pytest.raises(Refusal):
            one.nodes[name].rows.recall(one.nodes["A1"].own[ONE])


def test_days_are_apart_and_go_without_a_word() -> None:
    one = world(PADS, 2)
    b1 = one.nodes["B1"]
    tomorrow = WordHolder(one.nodes["A1"].keys, one.nodes["A1"].above, 2, DAY + 1)
    read = b1.rows.read(tomorrow.item(ONE))
    assert b1.rows.put(key_of("A1").public(), read)
    assert not b1.rows.put(key_of("A1").public(), read)
    assert b1.rows.days == (DAY, DAY + 1)
    assert b1.rows.missing() == []
    (shown,) = b1.rows.take_changes().shown
    assert shown.day == DAY + 1
    list(b1.rows.expire(DAY))
    assert b1.rows.days == (DAY + 1,)
    assert len(b1.rows) == 1
    assert set(b1.rows.of(key_of("A1").public())) == {read.name}
    assert b1.rows.of(key_of("A2").public()) == {}
    assert b1.rows.take_changes() == ((), ())
    assert b1.rows.matching(DAY, shown.name) == []
    assert len(b1.rows.matching(DAY + 1, shown.name)) == 1


def test_items_are_taken_one_by_one_or_in_pieces() -> None:
    one = world(PADS, 2)
    rows, child = one.nodes["B3"].rows, key_of("B2").public()
    count = len(rows)
    with pytest.raises(KeyError):
        rows.take(child, bytes(16))
    assert len(rows.drop(child, 1)) == 1
    assert len(rows.drop(child, 9)) == 1
    assert rows.drop(child, 9) == []
    assert len(rows) == count - 2
