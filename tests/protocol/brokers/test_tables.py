"""What a broker asks of its filters: who matches, and what changed at the top, whatever keeps them."""

from __future__ import annotations

from random import Random

import pytest
from core_examples import properties
from filter_examples import TOPICS, WIDE, Brute, drawn, filters, message, messages
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter, covers, point
from hushcast_protocol.brokers.poset import Poset

every_table = pytest.mark.parametrize("kind", [Poset, Levels])
moves = st.lists(st.tuples(filters(), st.integers(0, 3), st.integers(0, 5)), max_size=60)


def move(table: Poset | Levels, brute: Brute, one: Filter, source: int, comes: bool) -> None:
    if comes:
        assert table.insert(one, source) is brute.insert(one, source)
    elif source in brute.held.get(one, ()):
        assert table.remove(one, source) is brute.remove(one, source)


@every_table
@properties(50)
@given(moves, st.integers(0, 2**32))
def test_all_that_match_a_message_are_found_and_their_sources(kind, moves, seed):
    table, brute, random = kind(), Brute(), Random(seed)
    for one, source, choice in moves:
        move(table, brute, one, source, comes=choice > 1)
    assert len(table) == len(brute.held)
    for topic in TOPICS:
        for values in (message(random, topic) for _ in range(5)):
            found = table.matching(topic, point(topic, values))
            assert len(found) == len(set(found))
            assert set(found) == brute.matching(topic, values)
            assert table.interested(topic, point(topic, values)) == brute.sources(found)


@every_table
@properties(50)
@given(moves)
def test_changes_of_the_roots_add_up_to_the_roots(kind, moves):
    table, brute, told = kind(), Brute(), set()
    for one, source, choice in moves:
        move(table, brute, one, source, comes=choice > 1)
        assert table.roots() == brute.roots()
        if choice % 2:  # otherwise changes gather
            changes = table.take_changes()
            assert changes.withdrawn == told - brute.roots()
            assert changes.shown == brute.roots() - told
            told = brute.roots()
            assert not table.take_changes()


@pytest.mark.slow
@pytest.mark.parametrize("topic", [TOPICS[3], WIDE], ids=lambda topic: topic.name)
def test_among_many_filters(topic):
    random = Random(f"tables {topic.name}")
    tables: list[Poset | Levels] = [Poset(), Levels()]
    brute, told = Brute(), set()
    held = list(dict.fromkeys(drawn(random, [topic]) for _ in range(600)))
    for gone in ([], held[:400]):
        for one in gone or held:
            assert {table.remove(one, 1) if gone else table.insert(one, 1) for table in (*tables, brute)} == {
                True
            }
        roots = brute.roots()
        for table in tables:
            changes = table.take_changes()
            assert table.roots() == (told | changes.shown) - changes.withdrawn == roots
        told = roots
        for values in (message(random, topic) for _ in range(20)):
            matching = brute.matching(topic, values)
            for table in tables:
                assert set(table.matching(topic, point(topic, values))) == matching


@every_table
def test_what_came_and_went_in_between_is_no_change(kind):
    topic = TOPICS[0]
    wide, narrow = Filter(topic, ((0, 5),)), Filter(topic, ((1, 2),))
    table = kind()
    table.insert(narrow, "a")
    assert table.take_changes().shown == {narrow}
    table.insert(wide, "b")
    table.remove(wide, "b")
    assert not table.take_changes()
    table.insert(wide, "b")
    changes = table.take_changes()
    assert (changes.shown, changes.withdrawn) == ({wide}, {narrow})
    table.insert(wide, "c")
    table.insert(Filter(topic, ((1, 1),)), "c")
    assert not table.take_changes()
    for one, source in ((wide, "b"), (wide, "c")):
        table.remove(one, source)
    changes = table.take_changes()
    assert (changes.shown, changes.withdrawn) == ({narrow}, {wide})


@every_table
def test_an_empty_table_matches_nothing(kind):
    assert kind().matching(TOPICS[0], (None,)) == []
    assert kind().interested(TOPICS[0], (None,)) == set()
    assert not kind().take_changes()


@pytest.mark.parametrize("topic", TOPICS[:3], ids=lambda topic: topic.name)
def test_a_filter_matches_a_message_if_it_covers_its_point(topic):
    random = Random(f"points {topic.name}")
    for one in (drawn(random, [topic]) for _ in range(20)):
        for values in messages(topic):
            assert covers(one, Filter(topic, point(topic, values))) is one.predicate.matches(values)
