"""Topics: one normal form, one length limit, hidden from logs."""

import base64
import contextlib
import dataclasses
import pickle
import re
import unicodedata

import pytest
from core_examples import bit_flips, packed, properties
from hypothesis import given
from hypothesis import strategies as st
from topic_examples import EVENTS, PRIVATE, SECRET, topics

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import (
    LINK_SCHEME,
    MAX_LINK,
    MAX_TOPIC,
    MAX_WIDTH,
    Interest,
    Topic,
    make_topic,
    parse_topic,
    write_link,
)


@pytest.mark.slow
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


# Topics with attributes


def test_equal_topics_hash_the_same_also_after_they_went_to_another_process():
    topic = make_topic("events", ["lat:-90..90:0.01", "kind"])
    assert hash(topic) == hash(make_topic("events", ["kind", "lat:-90..90:0.01"]))
    copied = pickle.loads(pickle.dumps(topic))
    assert copied == topic
    assert set(vars(copied)) == {
        "name",
        "attributes",
        "secret",
        "width",
    }  # each process hashes texts in its own way
    assert hash(copied) == hash(topic)
    # Filters of topics that differ in their attributes alone do not meet in one place of a table.
    others = [make_topic("events", [f"a{number}"]) for number in range(100)]
    assert len({hash(Filter(other, (None,))) for other in others}) == 100


def test_what_people_write_makes_a_topic():
    assert EVENTS.name == "events"
    assert [one.name for one in EVENTS.attributes] == ["kind", "lat", "lon"]
    assert make_topic("news") == parse_topic("news") == Topic("news")


TOO_MUCH = {
    "twice": (["a", "b", "a"], "same name"),
    "nine": (list("abcdefghi"), "at most 8"),
    "tokens": (["a:0..4294967295", "b:0..4294967295", "c:0..65535"], "84 tokens.*coarser"),
    "malformed": (["a:2..1"], "upside down"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_topics_that_cannot_be_are_usage_errors(what):
    specs, reason = TOO_MUCH[what]
    with pytest.raises(UsageError, match=reason):
        make_topic("t", specs)


def test_the_schema_tells_topics_apart():
    schemas = [
        Topic("a").schema,
        make_topic("a", ["x"]).schema,
        make_topic("a", ["y"]).schema,
        make_topic("a", ["x", "y"]).schema,
        make_topic("a", ["x:0..1"]).schema,
        make_topic("a", ["x:0..2"]).schema,
        make_topic("a", ["x:0..2:2"]).schema,
        make_topic("b", ["x"]).schema,
    ]
    assert len(set(schemas)) == len(schemas)


def test_equal_topics_have_equal_schemas_however_they_were_typed():
    """Keys are kept by topic: were two equal ones of different schemas, one would get the other's key."""
    one, other = make_topic("a", ["x:0..1:0.1"]), make_topic("a", ["x:0.0..1.00:1e-1"])
    assert one == other
    assert one.schema == other.schema
    assert write_link(one) == write_link(other)


# Links


@pytest.mark.slow
@properties(300)
@given(topics())
def test_links_are_written_and_read_back(topic):
    link = write_link(topic)
    assert parse_topic(link) == topic
    assert parse_topic(f"{link}\n") == topic
    assert len(link) <= MAX_LINK
    assert re.fullmatch(r"hushcast:[A-Za-z0-9_-]+", link)


def test_the_largest_topic_fits_its_link():
    names = [f"{letter * 32}" for letter in "abcdefgh"]
    specs = [f"{name}:-999999999999999..-999999999999998.5:0.5" for name in names]
    topic = make_topic("x" * MAX_TOPIC, specs, SECRET)
    assert parse_topic(write_link(topic)) == topic
    numbers = [f"{name}:-99999999999999.999999999999..-99999999999999.999999999998:1e-12" for name in names]
    topic = make_topic("é" * (MAX_TOPIC // 2), numbers, SECRET)
    assert parse_topic(write_link(topic)) == topic


def test_a_link_does_not_change():
    """Pinned: people keep links."""
    assert write_link(EVENTS) == (
        "hushcast:lKd0b3BpYy8xpmV2ZW50c5Oka2luZLFsYXQ6LTkwLi45MDowLjAwMbNsb246LTE4MC4uMTg"
        "wOjAuMDAxwLYL46ti02QD"
    )
    assert write_link(PRIVATE) == (
        "hushcast:lKd0b3BpYy8xpmV2ZW50c5Oka2luZLFsYXQ6LTkwLi45MDowLjAwMbNsb246LTE4MC4uMTg"
        "wOjAuMDAxxCAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eH9UFfZqJFAX9"
    )


def shows_nothing(error, link):
    text = str(error)
    packed = link.removeprefix(LINK_SCHEME)
    parts = [packed[at : at + 4] for at in range(len(packed) - 3)]
    return not any(part in text for part in parts) and "events" not in text


@pytest.mark.parametrize("topic", [EVENTS, PRIVATE, Topic("events")], ids=["open", "private", "plain"])
@pytest.mark.parametrize("width", range(1, MAX_WIDTH + 1))
def test_a_width_stands_in_the_link_and_makes_another_topic(topic, width):
    wide = dataclasses.replace(topic, width=width)
    assert parse_topic(write_link(wide)) == wide
    assert len({wide, topic}) == 2
    assert len({write_link(wide), write_link(topic)}) == 2
    assert len({wide.schema, topic.schema}) == 2
    assert parse_topic(write_link(topic)).width == 0


def test_the_link_of_a_wide_topic_does_not_change():
    assert write_link(Topic("events", width=2)) == "hushcast:lad0b3BpYy8ypmV2ZW50c5DAAitCTfuWYhK8"


@pytest.mark.parametrize("width", [-1, MAX_WIDTH + 1])
def test_other_widths_are_refused(width):
    with pytest.raises(UsageError, match=f"0 to {MAX_WIDTH}"):
        make_topic("events", width=width)


@pytest.mark.parametrize("topic", [EVENTS, PRIVATE, Topic("events")], ids=["open", "private", "plain"])
def test_every_flipped_bit_of_a_link_is_a_usage_error_that_shows_nothing(topic):
    link = write_link(topic)
    for damaged in bit_flips(link.encode()):
        text = damaged.decode(errors="surrogateescape")
        with pytest.raises(UsageError) as caught:
            parse_topic(text)
        assert shows_nothing(caught.value, link)


@pytest.mark.parametrize("topic", [EVENTS, PRIVATE, Topic("events")], ids=["open", "private", "plain"])
def test_every_truncation_of_a_link_is_a_usage_error_that_shows_nothing(topic):
    link = write_link(topic)
    for size in range(len(LINK_SCHEME), len(link)):
        with pytest.raises(UsageError) as caught:
            parse_topic(link[:size])
        assert shows_nothing(caught.value, link)


@pytest.mark.parametrize(
    "change", ["{}=", "{}==", "{}A", "{} x", "{}\n{}", "hushcast:{}", " {}", "{}" + "A" * MAX_LINK]
)
def test_what_is_pasted_around_a_link_is_a_usage_error_that_shows_nothing(change):
    link = write_link(PRIVATE)
    with pytest.raises(UsageError) as caught:
        parse_topic(change.format(link, link))
    assert shows_nothing(caught.value, link)


def test_every_flipped_bit_inside_a_link_is_found_by_its_hash():
    data = base64.urlsafe_b64decode(write_link(Topic("events")).removeprefix(LINK_SCHEME) + "==")
    for damaged in bit_flips(data):
        with pytest.raises(UsageError):
            parse_topic(LINK_SCHEME + base64.urlsafe_b64encode(damaged).decode().rstrip("="))


def link_of(body: bytes) -> str:
    """A link around any body, whose hash is right."""
    packed = base64.urlsafe_b64encode(body + digest(Domain.LINK, body, size=8)).decode()
    return LINK_SCHEME + packed.rstrip("=")


HOSTILE = {
    "empty": b"",
    "another version": encode(["topic/3", "events", [], None]),
    "no width": encode(["topic/2", "events", [], None]),
    "width of none": encode(["topic/2", "events", [], None, 0]),
    "too wide": encode(["topic/2", "events", [], None, MAX_WIDTH + 1]),
    "a width that is none": encode(["topic/2", "events", [], None, "1"]),
    "more fields": encode(["topic/1", "events", [], None, 1]),
    "fewer fields": encode(["topic/1", "events", []]),
    "short secret": encode(["topic/1", "events", [], bytes(31)]),
    "empty secret": encode(["topic/1", "events", [], b""]),
    "no name": encode(["topic/1", "", [], None]),
    "malformed attribute": encode(["topic/1", "events", ["a:2..1"], None]),
    "same attribute": encode(["topic/1", "events", ["a", "a"], None]),
    "many attributes": encode(["topic/1", "events", ["a"] * 9, None]),
    "long name": encode(["topic/1", "x" * 257, [], None]),
    "more behind": encode(["topic/1", "events", [], None]) + b"\x00",
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_links_that_somebody_made_wrongly_are_usage_errors(hostile):
    with pytest.raises(UsageError):
        parse_topic(link_of(HOSTILE[hostile]))


@pytest.mark.slow
@properties(300)
@given(packed | st.binary(max_size=60).map(lambda data: data))
def test_whatever_stands_in_a_link_is_a_topic_or_a_usage_error(value):
    body = value if isinstance(value, bytes) else encode(value)
    with contextlib.suppress(UsageError):
        parse_topic(link_of(body))


@pytest.mark.parametrize("topic", [EVENTS, PRIVATE], ids=["open", "private"])
def test_topics_and_interests_hide_everything_in_print(topic):
    interest = Interest(topic, parse_where("kind = wildfire, lat in [60.125, 61.375]", topic.attributes))
    for value in (topic, interest, topic.secret, interest.predicate):
        shown = f"{value} {value!r} {[value]}"
        for hidden in ("events", "kind", "wildfire", "lat", "60.125", "150125", "0.001", write_link(topic)):
            assert hidden not in shown
        assert SECRET.reveal().hex() not in shown
        assert repr(SECRET.reveal())[2:-1] not in shown
