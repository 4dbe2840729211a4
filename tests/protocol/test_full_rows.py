"""Tables on encrypted words: who gets what, by how many rows, and that all who get something open it."""

from __future__ import annotations

import pytest
from full_world import FIGURE_2, World, word_of

from hushcast_protocol.brokers.full.actions import GROUP, PADS, Action

ACTIONS = pytest.mark.parametrize("action", [PADS, GROUP], ids=["pads", "group"])
LAYERS = pytest.mark.parametrize("layers", [2, 3, 4])
ONE, TWO, THREE = (word_of(number) for number in (1, 2, 3))


def world(action: Action, layers: int, *, aggregates: bool = True) -> World:
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
def test_who_asked_and_nobody_else_gets_and_opens_it(action: Action, layers: int, aggregates: bool) -> None:
    one = world(action, layers, aggregates=aggregates)
    for words in ((ONE,), (TWO,), (THREE,), (THREE, TWO, ONE)):
        got = one.publish(*words)
        assert got.keys() == one.interested(*words)
        for name, found in got.items():
            assert [set(copy.tokens) for copy in found] == [one.nodes[name].own.keys() & set(words)]


@ACTIONS
@LAYERS
def test_brokers_have_one_row_a_word(action: Action, layers: int) -> None:
    one = world(action, layers)
    assert one.rows_of("B1") == [{"A1", "A2"}]
    assert sorted(map(sorted, one.rows_of("B2"))) == [["A3", "A4", "A5"], ["A4"]]
    assert sorted(map(sorted, one.rows_of("B3"))) == [["B1", "B2"], ["B2"]]
    assert one.rows_of("C") == [{"B4"}, {"B4"}]
