"""What brokers see of filters and messages: nothing is named, and they compare as the originals do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.crypto.secrets import TopicKey, TopicSecret
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.brokers.clear_words import (
    ID_DAY,
    ShownFilter,
    from_outside,
    inside,
    outside,
    point,
    read_words,
    shown,
    words,
)
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.content.tokens import hashed_topic_key
from hushcast_protocol.content.topics import Topic, make_topic
from tests.protocol.brokers.filter_examples import TOPICS, drawn, messages

SEEDS = st.integers(0, 2**32)


def key(topic: Topic) -> TopicKey:
    return hashed_topic_key(topic, bytes(32), ID_DAY)


def seen(given: Filter) -> Filter:
    """The filter as a broker has it, once over the wire."""
    sent = encode(shown(key(given.topic), given))
    return outside(decoder(ShownFilter, "filter", 4096)(sent))


@given(SEEDS)
def test_brokers_compare_what_they_see_as_the_originals_compare(seed: int) -> None:
    random = Random(seed)
    one, other = drawn(random), drawn(random)
    assert covers(seen(one), seen(other)) == covers(one, other)
    assert (seen(one) == seen(other)) == (one == other)
    assert seen(one).volume == pytest.approx(one.volume)


@pytest.mark.parametrize("topic", TOPICS[:3], ids=lambda topic: topic.name)
def test_a_filter_covers_the_point_of_exactly_the_messages_it_matches(topic: Topic) -> None:
    random = Random(7)
    filters = [drawn(random, [topic]) for _ in range(12)]
    boxes = [seen(one) for one in filters]
    for values in messages(topic):
        _, found = read_words(words(key(topic), topic, values))
        at = Filter(boxes[0].topic, point(boxes[0].topic, found))
        for filter_, box in zip(filters, boxes, strict=True):
            assert covers(box, at) == filter_.predicate.matches(values)


@given(SEEDS)
def test_what_is_seen_outside_can_be_sent_on_and_understood_by_who_subscribed(seed: int) -> None:
    random = Random(seed)
    own = drawn(random)
    sent = shown(key(own.topic), own)
    assert from_outside(outside(sent)) == sent
    assert inside(own, outside(sent)) == own
    wider = Filter(own.topic, (None, *own.sides[1:]))
    assert inside(own, seen(wider)) == wider


def test_names_labels_and_secrets_are_not_in_what_is_sent() -> None:
    topic = make_topic("a name nobody sees", ["kind"], TopicSecret(bytes(range(32))))
    filter_ = Filter(topic, ("a label nobody sees",))
    sent = encode(shown(key(topic), filter_)) + b"".join(
        words(key(topic), topic, {"kind": "a label nobody sees"})
    )
    for part in (b"a name", b"a label", b"kind", bytes(range(8))):
        assert part not in sent


@pytest.mark.parametrize(
    "tokens",
    [
        [bytes(16), bytes((0, 1)) + bytes(14), bytes((0, 2)) + bytes(14)],
        [bytes(16), bytes((8, 1)) + bytes(14)],
        [bytes(16), bytes((0, 3)) + bytes(14)],
        [bytes(16), bytes((0, 1)) + b"\xff" * 14],
    ],
    ids=["twice", "no such attribute", "neither", "on no grid"],
)
def test_words_that_say_nothing_are_refused(tokens: list[bytes]) -> None:
    with pytest.raises(DecodeError):
        read_words(tokens)


@pytest.mark.parametrize(
    ("places", "sides"),
    [
        ((7,), ()),
        ((7,), ((3, 2),)),
        ((7,), ((0, 8),)),
        ((7,), (bytes(14),)),
        ((None,), ((0, 1),)),
    ],
    ids=["too few", "upside down", "outside", "label of a number", "range of a label"],
)
def test_filters_that_are_none_are_refused(places: tuple, sides: tuple) -> None:
    with pytest.raises(DecodeError):
        outside(ShownFilter(bytes(16), places, sides))
