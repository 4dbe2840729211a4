"""Tags: what lets a message into a subscription's tree and does not travel inside."""

from __future__ import annotations

import pytest
from core_examples import TOPIC_KEY, stream
from hypothesis import given
from hypothesis import strategies as st
from topic_examples import EVENTS, PRIVATE, values, where

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.messages import MAX_TOKENS
from hushcast_protocol.content.predicates import MAX_TAGS, MAX_WHERE, Predicate, check_tags, write_where
from hushcast_protocol.content.tokens import (
    TOKEN_COUNTS,
    entry_condition,
    entry_tokens,
    published_tokens,
    tag_token,
    token,
    topic_key,
)
from hushcast_protocol.content.topics import make_topic

ONE, OTHER = "0" * 31 + "1", "f" * 32
many = st.frozensets(st.binary(min_size=16, max_size=16).map(bytes.hex), max_size=MAX_TAGS)


def tags_of(count: int) -> frozenset[str]:
    return frozenset(f"{number:032x}" for number in range(count))


@given(many)
def test_tags_are_read_as_they_are_written(tags):
    predicate = Predicate(where(EVENTS, "kind = fire").conditions, tags)
    assert where(EVENTS, write_where(predicate)) == predicate
    assert where(EVENTS, write_where(Predicate((), tags))) == Predicate((), tags)


def test_an_attribute_may_have_their_name():
    topic = make_topic("x", ["tags"])
    predicate = where(topic, f"tags = a, tags  [{ONE}]")
    assert [one.value for one in predicate.conditions] == ["a"]
    assert predicate.tags == {ONE}


def test_the_longest_condition_can_be_read_again():
    kinds = [f"{'n' * 31}{number}" for number in range(8)]
    topic = make_topic("x", kinds)
    text = ", ".join(f'{kind} = "{chr(92) * 128}"' for kind in kinds)
    longest = write_where(Predicate(where(topic, text).conditions, tags_of(MAX_TAGS)))
    assert len(longest) <= MAX_WHERE
    assert where(topic, longest).tags == tags_of(MAX_TAGS)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tags []", "32 hexadecimal"),
        ("tags [abc]", "32 hexadecimal"),
        (f"tags [{OTHER.upper()}]", "32 hexadecimal"),
        (f"tags [{ONE}], tags [{OTHER}]", "twice"),
        (f"tags [{ONE}", "']'"),
        ("tags [" + ", ".join(tags_of(MAX_TAGS + 1)) + "]", f"{MAX_TAGS} are possible"),
        (f"tags = {ONE}", "no attribute"),
    ],
)
def test_what_are_no_tags_is_refused(text, problem):
    with pytest.raises(UsageError, match=problem):
        where(EVENTS, text)


def test_tags_are_checked_where_they_come_from_a_program():
    assert check_tags([ONE, ONE, OTHER]) == {ONE, OTHER}
    for bad in ([ONE + "0"], tags_of(MAX_TAGS + 1)):
        with pytest.raises(UsageError):
            check_tags(bad)


@pytest.mark.slow
@given(many, many, st.integers(0, 99))
def test_a_message_enters_where_it_has_a_tag_that_is_wanted(had, wanted, seed):
    published = published_tokens(TOPIC_KEY, EVENTS, values(EVENTS, "kind=fire"), stream(seed), had)
    assert published[0] == token(TOPIC_KEY)
    assert len(published) in TOKEN_COUNTS
    entries = entry_tokens(TOPIC_KEY, Predicate(where(EVENTS, "kind = fire").conditions, wanted))
    if wanted:
        assert len(entries) == len(wanted)
        assert entries == tuple(sorted(entries))
        assert bool(set(entries) & set(published)) == bool(had & wanted)
    else:
        assert set(entries) <= set(published)


def test_relays_learn_tags_alone_and_no_condition_beside_them():
    predicate = Predicate(where(EVENTS, "kind = fire").conditions, frozenset({ONE}))
    assert entry_condition(predicate) is None
    assert entry_tokens(TOPIC_KEY, predicate) == (tag_token(TOPIC_KEY, ONE),)


def test_a_message_carries_so_many_tokens():
    wide = make_topic("x", ["a:0..4294967295", "b:0..65535"])
    carried = values(wide, "a=1", "b=1")
    left = MAX_TOKENS - 1 - 33 - 17
    assert len(published_tokens(TOPIC_KEY, wide, carried, stream(), tags_of(left))) == MAX_TOKENS
    with pytest.raises(UsageError, match="81 tokens"):
        published_tokens(TOPIC_KEY, wide, carried, stream(), tags_of(left + 1))


def test_a_subscriber_cannot_tell_tags_and_takes_what_comes():
    assert Predicate((), frozenset({ONE})).matches({})


def test_a_topics_tags_have_tokens_of_its_own():
    keys = [topic_key(PRIVATE, bytes(32), day) for day in (1, 2)]
    assert len({tag_token(key, tag) for key in keys for tag in (ONE, OTHER)}) == 4


@pytest.mark.parametrize("count", [1, 2, 7, 24, MAX_TAGS])
def test_the_number_of_tokens_does_not_tell_that_of_tags(count):
    """A probe has one tag; a publication may have many."""
    plain = make_topic("t", [])
    assert len(published_tokens(TOPIC_KEY, plain, {}, stream(), tags_of(count))) == 48
    full = make_topic("t", ["a:0..65535", "b:0..65535", "c:0..65535"])
    values = {"a": 1, "b": 2, "c": 3}
    assert len(published_tokens(TOPIC_KEY, full, values, stream(), tags_of(min(count, 28)))) == MAX_TOKENS
