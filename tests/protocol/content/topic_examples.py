"""Topics with attributes for the tests of grammar, tokens and matching, and keys that cost nothing."""

from __future__ import annotations

from decimal import Decimal

from core_examples import TOPIC_KEY
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.secrets import Randomness, TopicSecret
from hushcast_protocol.content.attributes import Label, Number, Values
from hushcast_protocol.content.predicates import Predicate, parse_where
from hushcast_protocol.content.tokens import entry_tokens, published_tokens
from hushcast_protocol.content.topics import MAX_WIDTH, Topic, make_topic, parse_values

SECRET = TopicSecret(bytes(range(32)))
PLACES = ("kind", "lat:-90..90:0.001", "lon:-180..180:0.001")
EVENTS = make_topic("events", PLACES)
PRIVATE = make_topic("events", PLACES, SECRET)
WORD = make_topic("readings", ["level:0..65535"])  # 16 bits

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,31}", fullmatch=True)
labels = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=16)


@st.composite
def numbers(draw: st.DrawFn, name: str | None = None) -> Number:
    """Any number attribute: low, resolution and steps are drawn, the high end follows."""
    resolution = Decimal(draw(st.integers(1, 999))).scaleb(draw(st.integers(-6, 3)))
    low = Decimal(draw(st.integers(-(10**6), 10**6))).scaleb(draw(st.integers(-6, 2)))
    high = low + resolution * draw(st.integers(1, 2 ** draw(st.integers(1, 32)) - 1))
    low, high, resolution = ((one + 0).normalize() if one else Decimal(0) for one in (low, high, resolution))
    return Number(name or draw(names), low, high, resolution)


@st.composite
def topics(draw: st.DrawFn) -> Topic:
    """Any topic of up to three attributes, open or private, of any width."""
    chosen = sorted(draw(st.lists(names, max_size=3, unique=True)))
    attributes = tuple(Label(name) if draw(st.booleans()) else draw(numbers(name)) for name in chosen)
    while sum(one.bits + 1 if isinstance(one, Number) else 1 for one in attributes) > 79:
        attributes = attributes[1:]
    secret = TopicSecret(draw(st.binary(min_size=32, max_size=32))) if draw(st.booleans()) else None
    return Topic(draw(names), attributes, secret, draw(st.integers(0, MAX_WIDTH)))


def where(topic: Topic, text: str) -> Predicate:
    return parse_where(text, topic.attributes)


def values(topic: Topic, *settings: str) -> Values:
    return parse_values(topic, settings)


def meets(topic: Topic, predicate: Predicate, carried: Values, randomness: Randomness) -> bool:
    """Tell whether a message is let into the predicate's tree where it enters the overlay."""
    published = published_tokens(TOPIC_KEY, topic, carried, randomness)
    return not set(entry_tokens(TOPIC_KEY, predicate)).isdisjoint(published)
