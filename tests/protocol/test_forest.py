"""The forest: part of what the poset knows, and the same roots."""

from __future__ import annotations

import pytest
from core_examples import properties
from filter_examples import Brute, filters
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.brokers.forest import Forest

moves = st.lists(st.tuples(filters(), st.integers(0, 3), st.booleans()), max_size=60)


@properties(50)
@given(moves)
def test_it_knows_part_of_what_the_poset_does_and_all_of_its_top(moves):
    forest, brute = Forest(), Brute()
    for one, source, comes in moves:
        if comes:
            assert forest.insert(one, source) is brute.insert(one, source)
        elif source in brute.held.get(one, ()):
            assert forest.remove(one, source) is brute.remove(one, source)
        else:
            with pytest.raises(KeyError):
                forest.remove(one, source)
    assert len(forest) == len(brute.held)
    assert forest.roots() == brute.roots()
    under = set()
    for one in brute.held:
        assert one in forest
        assert forest.sources(one) == brute.held[one]
        assert forest.predecessors(one) <= brute.predecessors(one)
        assert forest.immediate_successors(one) <= brute.successors(one)
        under |= forest.immediate_successors(one)
    assert under | forest.roots() == set(brute.held)
