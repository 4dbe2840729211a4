"""Topics: one normal form, one length limit, hidden from logs."""

import unicodedata

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.errors import UsageError
from hushcast_protocol.topics import MAX_TOPIC, Topic, parse_topic


@properties(300)
@given(st.text(st.characters(), max_size=300))
def test_any_text_is_a_topic_or_a_usage_error(text):
    try:
        topic = parse_topic(text)
    except UsageError:
        return
    assert topic.name == unicodedata.normalize("NFC", text)
    assert 1 <= len(topic.name.encode()) <= MAX_TOPIC
    assert parse_topic(topic.name) == topic


def test_both_ways_of_typing_an_accent_are_one_topic():
    assert parse_topic("caf\u00e9") == parse_topic("cafe\u0301")


def test_case_and_blanks_tell_topics_apart():
    assert len({parse_topic(text) for text in ("News", "news", " news", "news ", "ｎews")}) == 5


@pytest.mark.parametrize("text", ["x" * MAX_TOPIC, "é" * (MAX_TOPIC // 2)])
def test_the_longest_topics(text):
    assert parse_topic(text).name == text
    with pytest.raises(UsageError, match="at most 256"):
        parse_topic(text + "x")


def test_the_length_is_that_of_the_normal_form():
    assert len(parse_topic("e\u0301" * 100).name.encode()) == 200


def test_empty_topics_are_refused():
    with pytest.raises(UsageError, match="empty"):
        parse_topic("")


def test_lone_surrogates_are_refused():
    with pytest.raises(UsageError, match="Unicode"):
        parse_topic("a\udc80")


def test_a_topic_is_hidden_in_print():
    topic = Topic("whistle")
    assert "whistle" not in f"{topic} {topic!r} {[topic]}"
