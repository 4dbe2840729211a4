"""Matching against an oracle: VB §3's rule in plain Python on what people wrote, not on grid places.

The oracle knows names, written texts and exact fractions; it shares no code with the grammar, the grid, the
covers or the predicate. One rule is added to the paper's: numbers count as rounded to the resolution, halves
to the even place.
"""

from __future__ import annotations

import random
import unicodedata
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import pytest
from core_examples import NETWORK, stream

from hushcast_protocol.base.crypto.secrets import TopicKey, TopicSecret
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.predicates import Predicate, parse_where
from hushcast_protocol.content.tokens import (
    MAX_COVER,
    TOKEN_COUNTS,
    entry_tokens,
    published_tokens,
    topic_key,
)
from hushcast_protocol.content.topics import Topic, make_topic, parse_values

PAIRS = 100_000
TOPICS, SUBSCRIPTIONS, PUBLICATIONS = 2000, 5, 10  # a topic has so many of both: 100,000 pairs
assert TOPICS * SUBSCRIPTIONS * PUBLICATIONS == PAIRS

WORDS = ["fire", "flood", "Fire", "caf\u00e9", "cafe\u0301", "a, b", 'q"q', "in [1, 2]", "x" * 64]


# The oracle


@dataclass
class Axis:
    """A number as specified: range and resolution."""

    low: Decimal
    high: Decimal
    step: Decimal

    def rounded(self, written: str) -> Fraction:
        low, step = Fraction(self.low), Fraction(self.step)
        return low + step * round((Fraction(Decimal(written)) - low) / step)


@dataclass
class Wanted:
    """What a subscription says: a text, or two ends, either of which may be open (`None`)."""

    text: str | None = None
    low: str | None = None
    high: str | None = None


def oracle(schema: dict[str, Axis | None], wanted: dict[str, Wanted], given: dict[str, str]) -> bool:
    """VB §3: every attribute that the subscription names must be there, and inside."""
    for name, want in wanted.items():
        if name not in given:
            return False
        axis = schema[name]
        if axis is None:
            assert want.text is not None
            if unicodedata.normalize("NFC", given[name]) != unicodedata.normalize("NFC", want.text):
                return False
            continue
        value = axis.rounded(given[name])
        if want.low is not None and value < axis.rounded(want.low):
            return False
        if want.high is not None and value > axis.rounded(want.high):
            return False
    return True


# Random topics, subscriptions and publications, as texts


@dataclass
class Drawn:
    """One topic with its schema and the generator that draws on it."""

    chance: random.Random
    topic: Topic
    schema: dict[str, Axis | None]
    ends: dict[str, list[Decimal]] = field(default_factory=dict)

    def number(self, name: str) -> Decimal:
        """A number in range, often beside an end of some subscription, at a finer step than the grid's."""
        axis = self.schema[name]
        assert axis is not None
        steps = int((axis.high - axis.low) / axis.step)
        if self.ends.get(name) and self.chance.random() < 0.5:
            value = self.chance.choice(self.ends[name]) + self.chance.randint(-6, 6) * axis.step / 4
        else:
            value = axis.low + self.chance.randint(0, 4 * steps) * axis.step / 4
        return min(max(value, axis.low), axis.high)

    def subscription(self) -> tuple[Predicate, tuple[bytes, ...], dict[str, Wanted]]:
        """One that can be covered; those that cannot are refused and drawn anew."""
        while True:
            names = [name for name in self.schema if self.chance.random() < 0.7]
            self.chance.shuffle(names)
            wanted = {name: self.condition(name) for name in names}
            predicate = parse_where(", ".join(written(*one) for one in wanted.items()), self.topic.attributes)
            try:
                return predicate, entry_tokens(self.key, predicate), wanted
            except UsageError:
                continue

    def condition(self, name: str) -> Wanted:
        axis = self.schema[name]
        if axis is None:
            return Wanted(text=self.chance.choice(WORDS))
        low = self.number(name)
        wide = (axis.high - axis.low) * Decimal(2) ** -self.chance.randint(0, 12)
        high = (
            low
            + (wide / axis.step).to_integral_value() * axis.step
            + axis.step * self.chance.randint(0, 3) / 4
        )
        self.ends.setdefault(name, []).extend([low, high])
        chance = self.chance.random()
        return Wanted(
            low=None if chance < 0.2 else f"{low:f}", high=None if 0.1 < chance < 0.3 else f"{high:f}"
        )

    def publication(self) -> dict[str, str]:
        given = {}
        for name, axis in self.schema.items():
            if self.chance.random() < 0.85:
                given[name] = self.chance.choice(WORDS) if axis is None else f"{self.number(name):f}"
        return given

    @property
    def key(self) -> TopicKey:
        return topic_key(self.topic, NETWORK.id, 1)


def written(name: str, want: Wanted) -> str:
    if want.text is not None:
        quoted = want.text.replace('"', '\\"')
        return f'{name} = "{quoted}"'
    return f"{name} in [{want.low or ''}, {want.high or ''}]"


def draw(chance: random.Random, kind: str) -> Drawn:
    """A topic of one of VB §3's kinds; private, so that keys cost nothing."""
    count = chance.randint(1, 4) if kind == "several" else 1
    schema: dict[str, Axis | None] = {}
    for name in "abcd"[:count]:
        if kind == "labels" or (kind == "several" and chance.random() < 0.3):
            schema[name] = None
            continue
        step = Decimal(chance.choice([1, 2, 3, 25])).scaleb(chance.randint(-4, 2))
        low = Decimal(chance.randint(-1000, 1000)).scaleb(chance.randint(-2, 2))
        bits = chance.randint(1, 16 if count > 1 else 20)
        schema[name] = Axis(low, low + step * chance.randint(2 ** (bits - 1), 2**bits - 1), step)
    specs = [name if a is None else f"{name}:{a.low:f}..{a.high:f}:{a.step:f}" for name, a in schema.items()]
    return Drawn(chance, make_topic("t", specs, TopicSecret(chance.randbytes(32))), schema)


@pytest.mark.slow
def test_100_000_random_pairs_against_the_oracle():
    chance, padding = random.Random(20_240_601), stream(1)
    pairs = matches = entered_for_nothing = 0
    by_kind = dict.fromkeys(("labels", "ranges", "several"), 0)
    for number in range(TOPICS):
        kind = list(by_kind)[number % 3]
        drawn = draw(chance, kind)
        subscriptions = [drawn.subscription() for _ in range(SUBSCRIPTIONS)]
        key = drawn.key
        for _ in range(PUBLICATIONS):
            given = drawn.publication()
            values = parse_values(drawn.topic, [f"{name}={text}" for name, text in given.items()])
            tokens = published_tokens(key, drawn.topic, values, padding)
            assert len(tokens) in TOKEN_COUNTS
            for predicate, entries, wanted in subscriptions:
                assert len(entries) <= MAX_COVER
                expected = oracle(drawn.schema, wanted, given)
                shown, enters = predicate.matches(values), not set(entries).isdisjoint(tokens)
                assert shown == expected, (drawn.schema, wanted, given)
                assert enters or not expected, (drawn.schema, wanted, given)
                # One condition is what is routed on: with no other to meet, what enters is what is wanted.
                assert len(wanted) > 1 or enters == expected
                pairs += 1
                matches += expected
                entered_for_nothing += enters and not expected
                by_kind[kind] += expected
    assert pairs == PAIRS
    assert 0.1 * PAIRS < matches < 0.9 * PAIRS, "pairs that all match, or never do, show nothing"
    assert all(count > 0.02 * PAIRS for count in by_kind.values())
    assert 0 < entered_for_nothing < 0.2 * PAIRS


@pytest.mark.slow
def test_labels_of_no_attributes_are_told_apart_by_name_and_secret():
    """The plainest kind: 10,000 pairs of topics from a few names and secrets."""
    chance, padding = random.Random(7), stream(2)
    secrets = [TopicSecret(bytes([number]) * 32) for number in range(3)]
    for _ in range(10_000):
        asked, told = (
            (unicodedata.normalize(chance.choice(["NFC", "NFD"]), chance.choice(WORDS)), chance.randrange(3))
            for _ in range(2)
        )
        want, got = (make_topic(name, (), secrets[number]) for name, number in (asked, told))
        same = (unicodedata.normalize("NFC", asked[0]), asked[1]) == (
            unicodedata.normalize("NFC", told[0]),
            told[1],
        )
        # The schema is in the key with the secret: a name tells private topics of one secret apart.
        published = published_tokens(topic_key(got, NETWORK.id, 1), got, {}, padding)
        entered = not set(entry_tokens(topic_key(want, NETWORK.id, 1), Predicate())).isdisjoint(published)
        assert entered == same


@pytest.mark.parametrize(
    ("where", "given", "expected"),
    [
        ({"a": Wanted(low="1", high="2")}, {"a": "1"}, True),
        ({"a": Wanted(low="1", high="2")}, {"a": "2.04"}, True),
        ({"a": Wanted(low="1", high="2")}, {"a": "2.06"}, False),
        ({"a": Wanted(low="1")}, {"a": "9"}, True),
        ({"a": Wanted(low="1")}, {"b": "x"}, False),
        ({"a": Wanted(high="2"), "b": Wanted(text="x")}, {"a": "0", "b": "x"}, True),
        ({"a": Wanted(high="2"), "b": Wanted(text="x")}, {"a": "0"}, False),
        ({}, {}, True),
    ],
)
def test_the_oracle_says_what_the_paper_says(where, given, expected):
    schema = {"a": Axis(Decimal(0), Decimal(10), Decimal("0.1")), "b": None}
    assert oracle(schema, where, given) is expected
