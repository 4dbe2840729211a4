"""Ways and envelopes: which topics travel, and what is inside the seal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hushcast_protocol.mqtt.envelope import (
    MARK,
    MAX_BESIDE,
    OpenedEnvelope,
    Place,
    disclose,
    enclose,
    placed,
    travelling,
)
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topics.topic_filters import is_name
from hushcast_protocol.mqtt.topics.ways import Way, Ways, open_way
from hushcast_protocol.mqtt.wire.packets import Properties

HOME, NEWS = Way("home", False), Way("news", True)
WAYS = Ways(["home", "garden"], {"zigbee2mqtt/#": "home"})


@pytest.mark.parametrize(
    ("topic", "found"),
    [
        ("hush/open/news", (NEWS, "")),
        ("hush/open/a/b", (Way("a/b", True), "")),
        ("hush/open/", None),
        ("hush/open", None),
        ("hush/open/" + "x" * 257, None),
        ("hush/home", (HOME, "")),
        ("hush/home/a/b", (HOME, "a/b")),
        ("hush/home/", (HOME, "")),
        ("hush/nobody/a", None),
        ("zigbee2mqtt", (HOME, "zigbee2mqtt")),
        ("zigbee2mqtt/lamp/set", (HOME, "zigbee2mqtt/lamp/set")),
    ],
)
def test_a_topic_has_a_way_and_a_path(topic: str, found: tuple[Way, str] | None) -> None:
    assert WAYS.takes(topic) == (topic != "hush")
    assert WAYS.of_topic(topic) == found


@pytest.mark.parametrize(
    "topic", ["hush", "home/a", "a/hush/open/b", "zigbee2mqtt2/a", "/hush/open/a", "hushopen"]
)
def test_all_other_topics_stay_here(topic: str) -> None:
    assert not WAYS.takes(topic)


@pytest.mark.parametrize(
    ("way", "path", "topics"),
    [
        (NEWS, "", ("hush/open/news",)),
        (NEWS, "ignored", ("hush/open/news",)),
        (HOME, "", ("hush/home",)),
        (HOME, "a/b", ("hush/home/a/b",)),
        (HOME, "zigbee2mqtt/lamp", ("hush/home/zigbee2mqtt/lamp", "zigbee2mqtt/lamp")),
        (Way("garden", False), "zigbee2mqtt/lamp", ("hush/garden/zigbee2mqtt/lamp",)),
        (HOME, "$SYS/broker", ("hush/home/$SYS/broker",)),
    ],
)
def test_who_has_the_link_reaches_only_topics_of_its_alias(
    way: Way, path: str, topics: tuple[str, ...]
) -> None:
    assert WAYS.topics(way, path) == topics


@pytest.mark.parametrize(
    ("wanted", "opens"),
    [
        ("hush/home/#", {HOME}),
        ("hush/home", {HOME}),
        ("hush/home/+/temp", {HOME}),
        ("hush/open/news", {NEWS}),
        ("zigbee2mqtt/+", {HOME}),
        ("zigbee2mqtt", {HOME}),
        ("#", set()),
        ("+/lamp", set()),
        ("hush/+/a", set()),
        ("hush/#", set()),
        ("home/#", set()),
    ],
)
def test_a_filter_opens_ways(wanted: str, opens: set[Way]) -> None:
    assert WAYS.of_filter(wanted) == opens


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("hush/open/#", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED),
        ("hush/open/a/+", Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED),
        ("hush/open/", Reason.TOPIC_FILTER_INVALID),
        ("hush/nobody/#", Reason.TOPIC_FILTER_INVALID),
    ],
)
def test_what_cannot_be_had_is_refused(wanted: str, reason: Reason) -> None:
    assert WAYS.of_filter(wanted) == reason


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("hush/home/kitchen/#", "kitchen"),
        ("hush/home/kitchen", "kitchen"),
        ("hush/home/#", ""),
        ("hush/home/+/a", ""),
        ("hush/home", ""),
        ("hush/home//a", ""),
        ("hush/home/toolong/#", ""),
        ("zigbee2mqtt/lamp", "zigbee2mqtt"),
        ("hush/garden/kitchen/#", ""),
    ],
)
def test_a_split_alias_has_a_way_for_each_level(wanted: str, first: str) -> None:
    ways = Ways(["home", "garden"], {"zigbee2mqtt/#": "home"}, ["home"], lambda level: level != "toolong")
    assert ways.of_filter(wanted) == {Way("garden" if "garden" in wanted else "home", False, first)}
    topic = wanted.replace("#", "x").replace("+", "cellar")
    found = ways.of_topic(topic)
    assert found is not None
    assert ways.label_of(*found) in (first, "x", "cellar"), "what is published there comes by it"
    assert ways.topics(Way("home", False, first), "zigbee2mqtt/x") == (
        "hush/home/zigbee2mqtt/x",
        "zigbee2mqtt/x",
    )


def test_names_that_look_the_same_are_one() -> None:
    assert open_way("e\u0301") == open_way("é")


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40).filter(
    lambda text: not text or is_name(text)
)
properties = st.fixed_dictionaries(
    {},
    optional={
        "content_type": names,
        "correlation_data": st.binary(max_size=20),
        "message_expiry_interval": st.integers(0, 2**32 - 1),
        "user_property": st.lists(st.tuples(names, names), min_size=1, max_size=5),
    },
)


places = st.none() | st.builds(
    Place,
    st.binary(min_size=8, max_size=8),
    st.integers(1, 2**32 - 1),
    st.integers(1, 2**64 - 1),
    st.booleans(),
)


@pytest.mark.slow
@given(
    st.binary(max_size=100) | st.binary(max_size=20).map(MARK.__add__),
    names,
    st.booleans(),
    properties,
    st.integers(0, 2),
    places,
    places,
)
def test_what_is_enclosed_comes_out(
    payload: bytes,
    path: str,
    retain: bool,
    found: Properties,
    qos: int,
    place: Place | None,
    other: Place | None,
) -> None:
    one = OpenedEnvelope(payload, path, retain, found, qos, place)
    assert disclose(enclose(one)) == one
    assert disclose(placed(enclose(one), other)) == replace(one, place=other or place)
    if retain or path or found:
        assert enclose(one, always=False) == enclose(one)


@given(st.binary(max_size=200) | st.binary(max_size=200).map(MARK.__add__))
def test_any_bytes_are_at_least_a_payload(data: bytes) -> None:
    one = disclose(data)
    assert one.payload == data or enclose(one) == data or is_name(f"/{one.path}")


def test_a_payload_alone_travels_as_it_is_where_programs_read_it() -> None:
    place = Place(bytes(8), 1, 1, True)
    assert enclose(OpenedEnvelope(b"it rains", qos=0), always=False) == b"it rains"
    assert placed(b"it rains", place) == b"it rains"
    assert disclose(b"it rains") == OpenedEnvelope(b"it rains", qos=1)
    assert disclose(placed(enclose(OpenedEnvelope(b"it rains")), place)).place == place


def test_too_much_beside_the_payload_is_refused() -> None:
    enclose(OpenedEnvelope(b"", properties={"user_property": [("a", "x" * (MAX_BESIDE - 60))]}))
    with pytest.raises(PacketError):
        enclose(OpenedEnvelope(b"", properties={"user_property": [("a", "x" * MAX_BESIDE)]}))


def test_only_what_may_leaves() -> None:
    found: Properties = {
        "content_type": "c",
        "topic_alias": 1,
        "subscription_identifier": [1],
        "user_property": [],
    }
    assert travelling(found, "all") == {"content_type": "c", "user_property": []}
    assert travelling(found, "known") == {"content_type": "c"}
    assert travelling(found, "none") == {}


def test_nothing_of_it_is_shown() -> None:
    assert "secret" not in f"{OpenedEnvelope(b'secret', 'secret')!r} {Way('secret', True)!r}"
