"""Topic names and filters: which are valid, and which match."""

from __future__ import annotations

from itertools import product

import pytest
from core_examples import properties as examples
from hypothesis import given
from mqtt_examples import filters
from mqtt_examples import topics as names

from hushcast_protocol.mqtt.topics.topic_filters import (
    MAX_TEXT,
    has_control,
    intersects,
    is_filter,
    is_name,
    levels,
    matches,
    split_share,
)


@pytest.mark.parametrize(
    "topic",
    [
        "a",
        "/",
        "//",
        "a/b",
        " ",
        "a b",
        "$SYS/x",
        "é",
        "\U0002a6d4",
        "\ufeffa",
        "\uffff",
        "\u00a0",
        "\u200b",
        "x" * MAX_TEXT,
    ],
)
def test_a_name(topic: str) -> None:
    assert is_name(topic)
    assert is_filter(topic)


@pytest.mark.parametrize(
    "topic",
    ["", "a\x00", "a\x01", "\x1f", "\x7f", "\x80", "\x9f", "x" * (MAX_TEXT + 1), "é" * (MAX_TEXT // 2 + 1)],
)
def test_neither_name_nor_filter(topic: str) -> None:
    assert not is_name(topic)
    assert not is_filter(topic)


@pytest.mark.parametrize(
    "wanted", ["#", "+", "+/+", "/#", "a/#", "a/+/b", "+/b/#", "/+", "$SYS/#", "$shared/x", "share"]
)
def test_a_filter(wanted: str) -> None:
    assert is_filter(wanted)
    assert is_name(wanted) == ("+" not in wanted and "#" not in wanted)
    assert split_share(wanted) is None
    assert is_filter("$share/group/" + wanted)
    assert split_share("$share/group/" + wanted) == ("group", wanted)


@pytest.mark.parametrize(
    "wanted", ["##", "#/a", "a#", "a/#/b", "/a#", "a+", "+a", "a/+b/c", "a/b+", "++", "#+", "+#", "a/#/"]
)
def test_no_filter(wanted: str) -> None:
    assert not is_filter(wanted)
    assert not is_filter("$share/group/" + wanted)


@pytest.mark.parametrize(
    "wanted", ["$share", "$share/", "$share/g", "$share/g/", "$share//a", "$share/+/a", "$share/g#/a"]
)
def test_no_shared_subscription(wanted: str) -> None:
    assert split_share(wanted) is not None
    assert not is_filter(wanted)


@pytest.mark.parametrize(
    ("topic", "count"), [("a", 1), ("/", 2), ("a/b/c", 3), ("$share/g/a/b", 2), ("#", 1)]
)
def test_levels(topic: str, count: int) -> None:
    assert levels(topic) == count


@pytest.mark.parametrize(
    ("wanted", "topic"),
    [
        ("a/b", "a/b"),
        ("a/#", "a"),
        ("a/#", "a/b/c"),
        ("a/#", "a/"),
        ("#", "a/b"),
        ("#", "/"),
        ("+", "a"),
        ("+/+", "/a"),
        ("/+", "/a"),
        ("a/+", "a/"),
        ("+/b/#", "a/b"),
        ("$SYS/#", "$SYS/a"),
        ("$SYS/+/b", "$SYS/a/b"),
    ],
)
def test_it_matches(wanted: str, topic: str) -> None:
    assert matches(wanted, topic)
    assert intersects(wanted, topic)
    assert intersects(topic, wanted)


@pytest.mark.parametrize(
    ("wanted", "topic"),
    [
        ("a", "A"),
        ("a", "a/"),
        ("/a", "a"),
        ("+", "/a"),
        ("+", "a/b"),
        ("a/+", "a"),
        ("a/#", "ab"),
        ("a/#", "b"),
        ("#", "$SYS/a"),
        ("+/a", "$SYS/a"),
        ("+/#", "$SYS"),
        ("a/b/#", "a"),
        ("\u00c5", "A\u030a"),
    ],
)
def test_it_does_not_match(wanted: str, topic: str) -> None:
    assert not matches(wanted, topic)
    assert not intersects(wanted, topic)
    assert not intersects(topic, wanted)


def test_filters_intersect_where_some_topic_matches_both() -> None:
    """Against every topic of up to four levels of three words, which decide for filters of three levels."""
    words = ("a", "$b", "")
    topics = ["/".join(one) for size in range(1, 5) for one in product(words, repeat=size)]
    parts = ("a", "$b", "+", "#")
    wanted = ["/".join(one) for size in range(1, 4) for one in product(parts, repeat=size)]
    wanted = [one for one in wanted if is_filter(one)]
    found = {one: {topic for topic in topics if topic and matches(one, topic)} for one in wanted}
    for one, other in product(wanted, repeat=2):
        assert intersects(one, other) == bool(found[one] & found[other]), (one, other)


@pytest.mark.slow
@given(wanted=filters, topic=names)
@examples(300)
def test_drawn_filters_and_names_are_valid(wanted: str, topic: str) -> None:
    assert is_filter(wanted)
    assert is_name(topic)
    share = split_share(wanted)
    assert isinstance(matches(share[1] if share else wanted, topic), bool)


def test_control_characters_are_found_in_any_text() -> None:
    assert [code for code in range(0x300) if has_control(chr(code))] == [*range(0x20), *range(0x7F, 0xA0)]
