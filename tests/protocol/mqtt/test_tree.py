"""The tree of filters finds what matching each filter by itself finds, as fast among many as among few."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.mqtt.topics.filter_tree import FilterTree
from hushcast_protocol.mqtt.topics.topic_filters import intersects, matches

LEVEL = st.sampled_from(["", "a", "b", "$SYS", "x y"])
TOPICS = st.lists(LEVEL, min_size=1, max_size=5).map("/".join).filter(bool)
FILTERS = st.builds(
    lambda levels, rest: "/".join([*levels, *rest]),
    st.lists(st.one_of(LEVEL, st.just("+")), max_size=4),
    st.sampled_from([["#"], ["a"], ["+"]]),
)


def tree_of(filters: list[str]) -> FilterTree[str]:
    tree: FilterTree[str] = FilterTree()
    for wanted in filters:
        tree.put(wanted, wanted)
    return tree


@pytest.mark.parametrize(
    ("wanted", "topic", "is_match"),
    [
        ("a/b", "a/b", True),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("a/+", "a/", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("#", "a", True),
        ("#", "$SYS/a", False),
        ("+/a", "$SYS/a", False),
        ("$SYS/#", "$SYS/a", True),
        ("$SYS/+", "$SYS/a", True),
        ("a/+/$b", "a/x/$b", True),
        ("+", "/", False),
        ("+/+", "/", True),
        ("/+", "/a", True),
        ("/", "/", True),
    ],
)
def test_section_4_7(wanted: str, topic: str, is_match: bool) -> None:
    assert tree_of([wanted]).match(topic) == ([wanted] if is_match else [])


@pytest.mark.slow
@given(st.lists(FILTERS, max_size=12, unique=True), st.lists(FILTERS, max_size=6), TOPICS)
def test_the_tree_agrees_with_matching_one_by_one(filters: list[str], removed: list[str], topic: str) -> None:
    tree = tree_of(filters)
    for wanted in removed:
        tree.remove(wanted)
    left = [wanted for wanted in filters if wanted not in removed]
    assert sorted(tree.match(topic)) == sorted(wanted for wanted in left if matches(wanted, topic))
    assert all(tree.get(wanted) == wanted for wanted in left)
    for other in (topic, *filters):
        assert sorted(tree.intersecting(other)) == sorted(one for one in left if intersects(one, other))
    for wanted in left:
        tree.remove(wanted)
    assert not tree


def seconds_a_lookup(count: int) -> float:
    tree = tree_of([f"site/{n % 100}/room/{n}/{'+' if n % 3 else 'temperature'}" for n in range(count)])
    topics = [f"site/{n % 100}/room/{n}/temperature" for n in range(0, count, max(1, count // 50))]
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for topic in topics:
            assert tree.match(topic)
        best = min(best, (time.process_time() - began) / len(topics))
    return best


def test_a_lookup_among_10_000_filters_takes_no_ten_times_as_long_as_among_ten() -> None:
    assert seconds_a_lookup(10_000) < 10 * max(seconds_a_lookup(10), 1e-6)
