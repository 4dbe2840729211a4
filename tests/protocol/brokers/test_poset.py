"""The poset: all four functions and the sources are as comparing all pairs finds them."""

from __future__ import annotations

from random import Random

import pytest
from core_examples import properties
from filter_examples import FUNCTIONS, TOPICS, WIDE, Brute, drawn, filters
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.brokers.bitmaps import LabelSlots, RangeEnds, Tallies, bitmap, slots_in
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.poset import Poset

moves = st.lists(st.tuples(filters(), st.integers(0, 3), st.booleans()), max_size=60)


def agree(poset: Poset, brute: Brute, asked: Filter) -> None:
    for name in FUNCTIONS:
        assert getattr(poset, name)(asked) == getattr(brute, name)(asked), name
    assert poset.sources(asked) == brute.sources([asked])
    assert (asked in poset) is (asked in brute.held)


@properties(50)
@given(moves, filters())
def test_it_says_what_comparing_all_pairs_says(moves, other):
    poset, brute = Poset(), Brute()
    for given_filter, source, comes in moves:
        if comes:
            assert poset.insert(given_filter, source) is brute.insert(given_filter, source)
        elif source in brute.held.get(given_filter, ()):
            assert poset.remove(given_filter, source) is brute.remove(given_filter, source)
        else:
            with pytest.raises(KeyError):
                poset.remove(given_filter, source)
    assert set(poset) == set(brute.held)
    assert len(poset) == len(brute.held)
    for one in [*brute.held, other]:
        agree(poset, brute, one)


@pytest.mark.parametrize("topics", [[TOPICS[0]], [TOPICS[3]], [WIDE]])
def test_many_in_one_topic_come_and_go(topics):
    """Enough for leaves to split, for labels to become bitmaps, and for slots to be used again."""
    random = Random(f"many {topics[0].name}")
    poset, brute = Poset(), Brute()
    for _ in range(700):
        one = drawn(random, topics)
        poset.insert(one, 1)
        brute.insert(one, 1)
    gone = random.sample(list(brute.held), len(brute.held) * 9 // 10)
    for at, one in enumerate(gone):
        if at % 60 == 0:
            agree(poset, brute, random.choice(list(brute.held)))
            agree(poset, brute, drawn(random, topics))
        poset.remove(one, 1)
        brute.remove(one, 1)
    for one in brute.held:
        agree(poset, brute, one)
    for one in list(brute.held):
        poset.remove(one, 1)
    assert len(poset) == 0
    assert list(poset) == []


def test_immediate_covers_close_behind_a_filter_that_goes():
    topic = TOPICS[0]
    chain = [Filter(topic, ((low, 7),)) for low in range(5)]
    poset = Poset()
    for at in (4, 0, 2, 1, 3):
        poset.insert(chain[at], "s")
    assert poset.immediate_successors(chain[0]) == {chain[1]}
    poset.remove(chain[1], "s")
    assert poset.immediate_successors(chain[0]) == {chain[2]}
    assert poset.immediate_predecessors(chain[2]) == {chain[0]}


def test_what_it_has_not_raises_key_error():
    poset, one = Poset(), drawn(Random(1))
    with pytest.raises(KeyError):
        poset.remove(one, "s")
    poset.insert(one, "s")
    with pytest.raises(KeyError):
        poset.remove(one, "t")
    assert poset.remove(one, "s")


@properties(50)
@given(st.sets(st.integers(0, 5000)))
def test_a_bitmap_holds_its_slots(slots):
    assert list(slots_in(bitmap(slots))) == sorted(slots)


@properties(30)
@given(st.lists(st.integers(0, 1023) | st.integers(500, 510), max_size=600), st.integers(0, 1023), st.data())
def test_ends_lie_up_to_a_place_or_from_it_on_or_may(places, asked, data):
    ends = RangeEnds(10, places.__getitem__)
    for slot, place in enumerate(places):
        ends.add(slot, place)
    gone = data.draw(st.integers(0, len(places)))
    for slot in range(gone):
        ends.discard(slot, places[slot])
    left = range(gone, len(places))
    for found, is_there in ((ends.up_to, int.__le__), (ends.from_, int.__ge__)):
        sure, perhaps = (set(slots_in(bits)) for bits in found(asked))
        there = {slot for slot in left if is_there(places[slot], asked)}
        assert sure <= there <= sure | perhaps <= set(left)


def test_ends_at_one_place_need_not_be_looked_at():
    ends = RangeEnds(10, lambda slot: 500)
    for slot in range(300):
        ends.add(slot, 500)
    assert ends.up_to(500) == ends.from_(500) == (bitmap(range(300)), 0)


@properties(30)
@given(st.lists(st.tuples(st.sets(st.integers(0, 80)), st.integers(0, 80), st.integers(0, 300)), max_size=30))
def test_tallies_count_for_each_slot(moves):
    tallies, numbers = Tallies(), dict.fromkeys(range(81), 0)
    for slots, cleared, number in moves:
        tallies.add(bitmap(slots))
        tallies.put(cleared, number)
        numbers |= {slot: numbers[slot] + 1 for slot in slots} | {cleared: number}
        less = {slot for slot in slots if numbers[slot]}
        tallies.subtract(bitmap(less))
        numbers |= {slot: numbers[slot] - 1 for slot in less}
        assert tallies.zero(bitmap(numbers)) == bitmap(slot for slot in numbers if not numbers[slot])
        if slots:
            least = min(numbers[slot] for slot in slots)
            assert tallies.least(bitmap(slots)) == bitmap(slot for slot in slots if numbers[slot] == least)


def test_labels_are_found_whether_rare_or_common():
    random, labels = Random(1), LabelSlots()
    held = {slot: random.choice("aaaaaaab") for slot in range(900)}
    for slot, label in held.items():
        labels.add(slot, label)
    for slot in random.sample(sorted(held), 800):
        labels.discard(slot, held.pop(slot))
        for label in "abc":
            assert labels.of(label) == bitmap(at for at, other in held.items() if other == label)
