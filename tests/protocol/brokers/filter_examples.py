"""Filters for the tests of brokers, and the same answers by comparing everything with everything."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import product
from random import Random

from hypothesis import strategies as st

from hushcast_protocol.brokers.filters import Filter, Side, covers
from hushcast_protocol.content.attributes import Attribute, Label, Number, Values
from hushcast_protocol.content.topics import Topic, make_topic

TOPICS = [
    make_topic("one", ["a:0..7"]),
    make_topic("two", ["a:0..9", "kind"]),
    make_topic("three", ["a:-1..1:0.5", "b:0..6", "kind"]),
    make_topic("four", ["a:0..3", "b:0..3", "c:0..100", "kind"]),
]
WIDE = make_topic("wide", ["a:0..65535", "b:0..65535", "c:-90..90:0.001", "kind"])
LABELS = "fxyz"


def side(random: Random, attribute: Attribute) -> Side:
    """Draw a side; half of all attributes have no condition."""
    if random.random() < 0.5:
        return None
    if isinstance(attribute, Label):
        return random.choice(LABELS)
    low, high = sorted((random.randint(0, attribute.last), random.randint(0, attribute.last)))
    return low, high


def drawn(random: Random, topics: list[Topic] = TOPICS) -> Filter:
    """Draw a filter."""
    topic = random.choice(topics)
    return Filter(topic, tuple(side(random, attribute) for attribute in topic.attributes))


def filters(topics: list[Topic] = TOPICS) -> st.SearchStrategy[Filter]:
    """Filters of these topics."""
    return st.builds(lambda seed: drawn(Random(seed), topics), st.integers(0, 2**32))


def message(random: Random, topic: Topic) -> Values:
    """Draw a message: one attribute in five is missing, and some labels are in no filter."""
    return {
        one.name: random.randint(0, one.last)
        if isinstance(one, Number)
        else random.choice([*LABELS, "other"])
        for one in topic.attributes
        if random.random() < 0.8
    }


def messages(topic: Topic) -> Iterable[Values]:
    """Every message that a topic can have, as far as its filters can tell: attributes may be missing."""
    choices = [
        [None, *(range(one.last + 1) if isinstance(one, Number) else (*LABELS, "other"))]
        for one in topic.attributes
    ]
    for values in product(*choices):
        yield {
            one.name: value for one, value in zip(topic.attributes, values, strict=True) if value is not None
        }


Held = dict[Filter, set[Hashable]]


class Brute:
    """The poset and the conditions, as the paper defines them, from all pairs."""

    def __init__(self) -> None:
        self.held: Held = {}

    def insert(self, given: Filter, source: Hashable) -> bool:
        is_new = given not in self.held
        self.held.setdefault(given, set()).add(source)
        return is_new

    def remove(self, given: Filter, source: Hashable) -> bool:
        self.held[given].remove(source)
        if self.held[given]:
            return False
        del self.held[given]
        return True

    def predecessors(self, f: Filter) -> set[Filter]:
        return {g for g in self.held if g != f and covers(g, f)}

    def successors(self, f: Filter) -> set[Filter]:
        return {g for g in self.held if g != f and covers(f, g)}

    def immediate_predecessors(self, f: Filter) -> set[Filter]:
        above = self.predecessors(f)
        return {g for g in above if not any(h != g and covers(g, h) for h in above)}

    def immediate_successors(self, f: Filter) -> set[Filter]:
        below = self.successors(f)
        return {g for g in below if not any(h != g and covers(h, g) for h in below)}

    def roots(self) -> set[Filter]:
        return {f for f in self.held if not self.predecessors(f)}

    def matching(self, topic: Topic, values: Values) -> set[Filter]:
        return {f for f in self.held if f.topic == topic and f.predicate.matches(values)}

    def sources(self, filters: Iterable[Filter]) -> set[Hashable]:
        return set().union(*(self.held.get(one, ()) for one in filters))

    def level(self, f: Filter, condition: str) -> int:
        """The size of the source set that a condition asks for."""
        return len(self.behind(f, condition))

    def behind(self, f: Filter, condition: str) -> set[Hashable]:
        """The source set that a condition asks for."""
        if condition == "source":
            return self.sources([f])
        if condition == "immediate-successor":
            return self.sources(self.immediate_successors(f))
        if condition == "successor":
            return self.sources(self.successors(f))
        step = (
            self.immediate_successors if condition == "immediate-predecessor-successor" else self.successors
        )
        return self.sources(g for p in self.immediate_predecessors(f) for g in step(p))


class Table(Brute):
    """The same for the filters of one moment, each pair compared once."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self.held = held
        above = {f: Brute.predecessors(self, f) for f in held}
        below: dict[Filter, set[Filter]] = {f: set() for f in held}
        for f, higher in above.items():
            for g in higher:
                below[g].add(f)
        # Between two stands what is below the one and above the other.
        self._kept = {
            "predecessors": above,
            "successors": below,
            "immediate_predecessors": {f: {g for g in above[f] if not below[g] & above[f]} for f in held},
            "immediate_successors": {f: {g for g in below[f] if not above[g] & below[f]} for f in held},
        }

    def predecessors(self, f: Filter) -> set[Filter]:
        return self._kept["predecessors"][f]

    def successors(self, f: Filter) -> set[Filter]:
        return self._kept["successors"][f]

    def immediate_predecessors(self, f: Filter) -> set[Filter]:
        return self._kept["immediate_predecessors"][f]

    def immediate_successors(self, f: Filter) -> set[Filter]:
        return self._kept["immediate_successors"][f]


FUNCTIONS = ("predecessors", "successors", "immediate_predecessors", "immediate_successors")


def everything(topic: Topic) -> list[Filter]:
    """Every filter that a small topic can have, with labels out of `LABELS`."""
    sides: list[list[Side]] = []
    for one in topic.attributes:
        if isinstance(one, Number):
            places = range(one.last + 1)
            sides.append([None, *((low, high) for low in places for high in places[low:])])
        else:
            sides.append([None, *LABELS])
    return [Filter(topic, chosen) for chosen in product(*sides)]
