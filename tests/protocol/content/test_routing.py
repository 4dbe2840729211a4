"""The routing table against one pybloom-live filter a next hop, and against an exact model over its life."""

import random
from collections import Counter

import pytest
from core_examples import FILTER_KEY, properties, stream
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pybloom_live import BloomFilter

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content import routing_table
from hushcast_protocol.content.bloom import CAPACITY, false_positive_rate
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.routing_table import RoutingTable
from hushcast_protocol.overlay.hops import host_hop, key_of, relay_hop


def hop_of(number: int) -> Hop:
    return relay_hop(number.to_bytes(32, "big"))


def element_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def contents(table: RoutingTable, elements: range) -> dict[bytes, set[bytes]]:
    return {element_of(number): set(table.lookup(element_of(number))) for number in elements}


tables = st.dictionaries(
    st.integers(0, 30), st.sets(st.integers(0, 200), min_size=1, max_size=40), max_size=12
)


@pytest.mark.slow
@properties(60)
@given(tables)
def test_a_table_agrees_with_one_pybloom_filter_a_next_hop(held):
    table = RoutingTable(FILTER_KEY)
    oracles = {}
    for hop, numbers in held.items():
        table.add(hop_of(hop), map(element_of, numbers))
        oracle = oracles[hop_of(hop)] = BloomFilter(64, 1e-9)
        for number in numbers:
            oracle.add(element_of(number).hex())
    for number in range(201):
        found = table.lookup(element_of(number))
        true = {hop_of(hop) for hop, numbers in held.items() if number in numbers}
        asked = {hop for hop, oracle in oracles.items() if element_of(number).hex() in oracle}
        assert true <= asked
        assert set(found) == asked
        assert len(found) == len(set(found))
    assert len(table) == len(held)


@pytest.mark.slow
def test_large_random_tables_have_no_false_negative():
    chooser = random.Random(4)
    table = RoutingTable(FILTER_KEY)
    oracles = {}
    for hop in range(200):
        numbers = [chooser.randrange(10_000) for _ in range(chooser.choice([1, 10, 100]))]
        table.add(hop_of(hop), map(element_of, numbers))
        oracle = oracles[hop_of(hop)] = BloomFilter(100, 1e-6)
        for number in numbers:
            oracle.add(element_of(number).hex(), skip_check=True)
        assert all(hop_of(hop) in table.lookup(element_of(number)) for number in numbers)
        assert all(element_of(number).hex() in oracle for number in numbers)
    for number in chooser.sample(range(10_000), 500):
        asked = {hop for hop, oracle in oracles.items() if element_of(number).hex() in oracle}
        # Each side errs once in 400,000 questions or less; of 100,000 they differ on three at the very most.
        assert len(asked ^ set(table.lookup(element_of(number)))) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("hops", "held", "questions"), [(100, CAPACITY, 100_000), (1000, 100, 20_000)])
def test_the_false_positive_rate_is_as_computed(hops, held, questions):
    """Absent elements only; wrong answers are near Poisson, so within five standard deviations."""
    table = RoutingTable(FILTER_KEY)
    for hop in range(hops):
        table.add(hop_of(hop), (element_of(hop << 32 | number) for number in range(held)))
    draw = stream(9)
    wrong = sum(len(table.lookup(draw(16))) for _ in range(questions))
    expected = questions * hops * false_positive_rate(held)
    assert abs(wrong - expected) <= 5 * max(expected, 1) ** 0.5


class TableLife(RuleBasedStateMachine):
    """Adding and removing leave exactly what a dict of counters says."""

    hops = st.integers(0, 5)
    batches = st.lists(st.integers(0, 15), max_size=6)

    def __init__(self):
        super().__init__()
        self.table = RoutingTable(FILTER_KEY)
        self.model: dict[int, Counter[int]] = {}
        self.added: list[tuple[int, int, list[int]]] = []  # hop, place, numbers

    @rule(hop=hops, numbers=batches)
    def add(self, hop, numbers):
        self.put(hop, numbers)

    @rule(hop=hops, first=st.integers(0, 15), count=st.integers(CAPACITY // 2, CAPACITY))
    def add_many(self, hop, first, count):
        self.put(hop, list(range(first, first + count)))

    def put(self, hop, numbers):
        if not numbers:
            with pytest.raises(Refusal, match="quota"):
                self.table.add(hop_of(hop), [])
            return
        place = self.table.add(hop_of(hop), map(element_of, numbers))
        self.added.append((hop, place, numbers))
        self.model.setdefault(hop, Counter()).update(numbers)

    @rule(hop=hops, count=st.integers(1, CAPACITY))
    def add_too_many(self, hop, count):
        with pytest.raises(Refusal, match="quota"):
            self.table.add(hop_of(hop), map(element_of, range(CAPACITY + count)))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data):
        hop, place, held = self.added.pop(data.draw(st.integers(0, len(self.added) - 1)))
        cut = data.draw(st.integers(1, len(held)))
        numbers, rest = held[:cut], held[cut:]
        self.table.remove(place, map(element_of, numbers))
        if rest:
            self.added.append((hop, place, rest))
        self.model[hop] -= Counter(numbers)
        if not self.model[hop]:
            del self.model[hop]

    @precondition(lambda self: self.model)
    @rule()
    def remove_everything(self):
        for _, place, held in self.added:
            self.table.remove(place, map(element_of, held))
        self.added.clear()
        self.model.clear()
        assert not self.table._rows

    @invariant()
    def the_table_holds_what_the_model_holds(self):
        assert len(self.table) == len(self.model)
        for hop in range(6):
            assert self.table.elements(hop_of(hop)) == self.model.get(hop, Counter()).total()
        for column in filter(None, self.table._by_bit):
            assert 0 < column.elements <= CAPACITY
        for number in range(16):
            found = self.table.lookup(element_of(number))
            assert sorted(found) == [hop_of(hop) for hop in sorted(self.model) if number in self.model[hop]]


TableLife.TestCase.settings = properties(60)
test_table_life = pytest.mark.slow(TableLife.TestCase)


def test_places_of_next_hops_gone_are_used_again():
    """Otherwise the rows of a relay that lives long would grow without bound."""
    table = RoutingTable(FILTER_KEY)
    for round_number in range(1000):
        one = table.add(hop_of(round_number), [element_of(1)])
        other = table.add(hop_of(round_number + 1_000_000), [element_of(1)])
        table.remove(one, [element_of(1)])
        table.remove(other, [element_of(1)])
    table.add(hop_of(0), [element_of(1)])
    assert max(row.bit_length() for row in table._rows.values()) <= 2


def test_a_full_filter_takes_no_more_and_keeps_what_it_has_and_another_comes_beside_it():
    table = RoutingTable(FILTER_KEY)
    first = table.add(hop_of(0), map(element_of, range(CAPACITY)))
    before = contents(table, range(CAPACITY))
    second = table.add(hop_of(0), [element_of(CAPACITY + 1), element_of(1)])
    assert second != first
    assert contents(table, range(CAPACITY)) == before, "once each, though two filters hold one of them"
    assert table.elements(hop_of(0)) == CAPACITY + 2
    assert len(table) == 1
    table.add(hop_of(1), [element_of(CAPACITY + 1)])
    assert set(table.lookup(element_of(CAPACITY + 1))) == {hop_of(0), hop_of(1)}
    table.remove(second, [element_of(CAPACITY + 1), element_of(1)])
    assert table.lookup(element_of(CAPACITY + 1)) == [hop_of(1)]
    assert table.lookup(element_of(1)) == [hop_of(0)]
    table.remove(first, [element_of(0)])
    assert table.add(hop_of(0), [element_of(CAPACITY + 1)]) == first, "what has room again is used again"


def test_filters_of_one_next_hop_are_as_many_as_its_elements_need(monkeypatch):
    """Whoever installs and withdraws at will must not leave a trail of filters that are nearly empty."""
    monkeypatch.setattr(routing_table, "CAPACITY", 20)
    chooser = random.Random(7)
    table = RoutingTable(FILTER_KEY)
    held: list[tuple[int, list[bytes]]] = []
    for _ in range(2000):
        batch = [element_of(chooser.randrange(1000)) for _ in range(chooser.randint(1, 10))]
        held.append((table.add(hop_of(0), batch), batch))
        while sum(len(batch) for _, batch in held) > 200:
            table.remove(*held.pop(chooser.randrange(len(held))))
    assert len(table._by_bit) <= 200 / 10 + 1


def test_a_refused_next_hop_leaves_no_place():
    table = RoutingTable(FILTER_KEY)
    with pytest.raises(Refusal):
        table.add(hop_of(0), map(element_of, range(CAPACITY + 1)))
    assert len(table) == 0
    assert not table._rows
    with pytest.raises(Refusal):
        table.add(hop_of(0), [])
    assert len(table) == 0


def test_a_relay_and_a_host_of_one_key_are_two_next_hops():
    table = RoutingTable(FILTER_KEY)
    relay = hop_of(1)
    host = host_hop(key_of(relay))
    place = table.add(relay, [element_of(1)])
    table.add(host, [element_of(2)])
    assert [table.lookup(element_of(number)) for number in (1, 2)] == [[relay], [host]]
    table.remove(place, [element_of(1)])
    assert [table.lookup(element_of(number)) for number in (1, 2)] == [[], [host]]


def test_an_empty_table_routes_nothing():
    assert RoutingTable(FILTER_KEY).lookup(element_of(0)) == []
    assert RoutingTable(FILTER_KEY).elements(hop_of(0)) == 0
