"""Names of topics: those of one message are the same by whichever one asks, and filters match all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.mqtt.topics.topic_filters import (
    common,
    covers,
    intersects,
    is_filter,
    is_name,
    matches,
    normal,
)
from hushcast_protocol.mqtt.topics.topic_names import alone
from hushcast_protocol.mqtt.topics.ways import Ways

WAYS = Ways(["home", "e\u0301"], {"z/#": "home", "a/b/#": "home", "caf\u00e9/#": "e\u0301"})
LEVELS = ["hush", "home", "\u00e9", "e\u0301", "open", "z", "a", "b", "x", "cafe\u0301", "caf\u00e9", ""]
LEVEL = st.sampled_from(LEVELS)
TOPICS = st.lists(LEVEL, min_size=1, max_size=5).map("/".join).filter(is_name)
FILTERS = (
    st.lists(st.one_of(LEVEL, st.just("+")), max_size=5)
    .flatmap(lambda levels: st.sampled_from([levels, [*levels, "#"]]))
    .map("/".join)
    .filter(lambda text: bool(text) and is_filter(text))
)


@pytest.mark.parametrize(
    ("topic", "shown", "every"),
    [
        ("z/x", {"z/x"}, {"z/x", "hush/home/z/x"}),
        ("hush/home/z/x", {"hush/home/z/x"}, {"z/x", "hush/home/z/x"}),
        ("hush/home/x", {"hush/home/x"}, {"hush/home/x"}),
        ("hush/home/", {"hush/home/", "hush/home"}, {"hush/home/", "hush/home"}),
        ("hush/home", {"hush/home"}, {"hush/home/", "hush/home"}),
        ("hush/open/e\u0301", {"hush/open/e\u0301", "hush/open/\u00e9"}, {"hush/open/\u00e9"}),
        ("e\u0301/x", {"e\u0301/x"}, {"\u00e9/x"}),
        ("hush/nobody/x", {"hush/nobody/x"}, {"hush/nobody/x"}),
        ("$SYS/x", {"$SYS/x"}, {"$SYS/x"}),
    ],
)
def test_a_topic_has_names(topic: str, shown: set[str], every: set[str]) -> None:
    named = WAYS.names(topic)
    assert named == topic
    assert (set(named.shown), set(named.every)) == (shown, every)


@pytest.mark.slow
@given(TOPICS)
def test_the_names_of_a_message_are_the_same_by_each_of_them(topic: str) -> None:
    every = set(WAYS.names(topic).every)
    assert normal(topic) in every
    assert all(set(WAYS.names(one).every) == every for one in every)
    out = WAYS.of_topic(topic)
    assert out is None or {normal(one) for one in WAYS.topics(*out)} <= every


@pytest.mark.slow
@given(FILTERS, TOPICS)
def test_images_match_a_topic_if_a_filter_matches_any_of_its_names(wanted: str, topic: str) -> None:
    by_images = any(matches(image, normal(topic)) for image in WAYS.images(wanted))
    assert by_images == any(matches(normal(wanted), name) for name in WAYS.names(topic).every)


@pytest.mark.slow
@given(FILTERS, TOPICS)
def test_a_filter_that_equals_another_matches_the_same_messages(wanted: str, topic: str) -> None:
    every = WAYS.names(topic).every
    for other in WAYS.names_of_filter(wanted).every:
        if matches(other, normal(topic)):
            assert any(matches(normal(wanted), name) for name in every)
        if matches(normal(wanted), normal(topic)):
            assert any(matches(other, name) for name in every)


@pytest.mark.slow
@given(FILTERS, FILTERS, TOPICS)
def test_what_two_filters_have_in_common_is_one_filter(one: str, other: str, topic: str) -> None:
    both = common(one, other)
    assert both is None or (covers(one, both) and covers(other, both) and is_filter(both))
    assert (both is not None and matches(both, topic)) == (matches(one, topic) and matches(other, topic))
    assert both is None or intersects(one, other)


def test_what_does_not_travel_has_one_name() -> None:
    assert (alone("e\u0301").shown, alone("e\u0301").every) == (("e\u0301",), ("\u00e9",))
