"""Access lists: a subscription never shows more than the list allows, and no name chooses a tree."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hushcast_protocol.mqtt.topics.access import MAX_REMEMBERED, Access, AccessPermissions, is_level, problem
from hushcast_protocol.mqtt.topics.topic_filters import covers, is_filter, matches
from hushcast_protocol.mqtt.topics.topic_names import alone

LEVEL = st.sampled_from(["a", "b", "", "$x"])
TOPICS = st.lists(LEVEL, min_size=1, max_size=4).map("/".join).filter(bool)
FILTERS = (
    st.lists(st.one_of(LEVEL, st.just("+")), min_size=0, max_size=4)
    .flatmap(lambda levels: st.sampled_from([levels, [*levels, "#"]]))
    .map("/".join)
    .filter(lambda text: bool(text) and is_filter(text))
)


@pytest.mark.slow
@given(FILTERS, FILTERS, TOPICS)
@example("a/#", "a", "a")
@example("#", "$x/#", "$x/a")
@example("+/#", "#", "a")
def test_what_covers_matches_all_that_the_other_matches(allowed: str, asked: str, topic: str) -> None:
    if covers(allowed, asked) and matches(asked, topic):
        assert matches(allowed, topic)


@pytest.mark.slow
@given(FILTERS, TOPICS)
def test_a_filter_covers_itself_and_each_topic_that_it_matches(one: str, topic: str) -> None:
    assert covers(one, one)
    assert covers(one, topic) == matches(one, topic)


@pytest.mark.slow
@given(st.lists(FILTERS, max_size=3), st.lists(FILTERS, max_size=2), FILTERS, TOPICS)
def test_nothing_is_shown_but_what_is_allowed(
    allowed: list[str], denied: list[str], asked: str, topic: str
) -> None:
    may = AccessPermissions(Access((), tuple(allowed), (), tuple(denied)), "u", "c")
    shown = any(matches(one, topic) for one in allowed) and not any(matches(one, topic) for one in denied)
    assert may.may_receive(alone(topic)) == shown == may.may_receive(alone(topic))
    if may.may_subscribe(alone(asked)):
        assert any(matches(one, topic) for one in allowed) or not matches(asked, topic)
    assert not may.may_publish(alone(topic))


def test_what_is_denied_of_a_wider_subscription_is_kept_back_alone() -> None:
    may = AccessPermissions(Access(("#",), ("#",), ("x/y",), ("test/no",)), "", "")
    assert may.may_subscribe(alone("#"))
    assert may.may_subscribe(alone("test/+"))
    assert not may.may_subscribe(alone("test/no"))
    assert may.may_receive(alone("test/yes"))
    assert not may.may_receive(alone("test/no"))
    assert may.may_publish(alone("test/no"))
    assert not may.may_publish(alone("x/y"))
    assert not may.may_publish(alone("$SYS/x"))
    assert not may.may_subscribe(alone("$SYS/#"))


def test_names_fill_whole_levels() -> None:
    access = Access(("u/%u/#",), ("c/%c",))
    assert AccessPermissions(access, "alice", "phone").may_publish(alone("u/alice/x"))
    assert not AccessPermissions(access, "alice", "phone").may_publish(alone("u/bob/x"))
    assert AccessPermissions(access, "alice", "phone").may_subscribe(alone("c/phone"))


@pytest.mark.parametrize("name", ["", "+", "#", "a/b", "+/x", "a\u2028b", "a\x00"])
def test_a_name_that_is_no_level_allows_nothing(name: str) -> None:
    may = AccessPermissions(Access(("u/%u/#", "all"), ("c/%c/#",)), name, name)
    assert not is_level(name)
    assert may.may_publish(alone("all"))
    for topic in (f"u/{name}", f"u/{name}/x", "u/a/b", "u/x", "u/%u"):
        assert not may.may_publish(alone(topic))
    for topic in (f"c/{name}/#", "c/#", "c/+/#", "c/%c"):
        assert not may.may_subscribe(alone(topic))


@pytest.mark.parametrize("one", ["#", "+", "a/#", "a/+/b", "a/%u/#", "a/%c", "/", "$SYS/#", "a//b"])
def test_filters_that_may_stand_in_a_list(one: str) -> None:
    assert problem(one) is None


@pytest.mark.parametrize(
    "one", ["", "a#", "a/#/b", "a+", "%u/#", "%c", "a/x%u", "a/%d", "$share/g/a", "100%", "a\x00"]
)
def test_filters_that_may_not(one: str) -> None:
    assert problem(one) is not None


def test_answers_that_are_remembered_are_bounded() -> None:
    may = AccessPermissions(Access(("a/#",)), "", "")
    for number in range(3 * MAX_REMEMBERED):
        assert may.may_publish(alone(f"a/{number}"))
        assert not may.may_publish(alone(f"b/{number}"))
    assert may.may_publish(alone("a/" + "x" * 1_000))
    assert len(may._publish._remembered) <= MAX_REMEMBERED
