"""Packets of both versions and both directions: some real ones, and strategies for random ones."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from hushcast_protocol.mqtt.wire import decoding
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    RequestedSubscription,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
    Will,
)

LARGEST = 1 << 18  # bytes of a packet

VALUES: dict[str, Any] = {
    # One of each property, as a real client or server would send it.
    "payload_format_indicator": 1,
    "message_expiry_interval": 60,
    "content_type": "text/plain",
    "response_topic": "answers/here",
    "correlation_data": b"\x00\x01",
    "session_expiry_interval": 3600,
    "assigned_client_identifier": "one-of-many",
    "server_keep_alive": 60,
    "authentication_method": "SCRAM",
    "authentication_data": b"data",
    "request_problem_information": 1,
    "will_delay_interval": 5,
    "request_response_information": 0,
    "response_information": "answers",
    "server_reference": "elsewhere",
    "reason_string": "too much",
    "receive_maximum": 20,
    "topic_alias_maximum": 10,
    "topic_alias": 1,
    "maximum_qos": 1,
    "retain_available": 1,
    "user_property": [("a", "1"), ("a", "2")],
    "maximum_packet_size": 65536,
    "wildcard_subscription_available": 1,
    "subscription_identifier_available": 1,
    "shared_subscription_available": 0,
    "subscription_identifier": [268_435_455],
}


def _of(*names: str) -> dict[str, Any]:
    return {name: VALUES[name] for name in names}


_MESSAGE = ("payload_format_indicator", "message_expiry_interval", "content_type", "response_topic")
_TOLD = _of("reason_string", "user_property")
WILL = Will("wills/here", b"gone", 1, True, _of(*_MESSAGE, "will_delay_interval", "user_property"))
OF_CLIENT: list[Packet] = [
    Connect(
        V5,
        "sensor",
        False,
        60,
        WILL,
        "user",
        b"\x00secret",
        _of("session_expiry_interval", "receive_maximum"),
    ),
    Connect(
        V5, "", True, 0, properties=_of("authentication_method", "authentication_data", "maximum_packet_size")
    ),
    Publish("home/kitchen/temp", b"21.5"),
    Publish(
        "home/kitchen/temp", b"21.5", 1, True, True, 1, _of(*_MESSAGE, "topic_alias", "correlation_data")
    ),
    Publish("", b"21.5", 2, packet_id=65535, properties=_of("topic_alias")),
    PubAck(1),
    PubRec(2, 0x10, _TOLD),
    PubRel(3, 0x92),
    PubComp(4, 0x92, _TOLD),
    Subscribe(
        5,
        [RequestedSubscription("home/#", 1, True, True, 2)],
        _of("subscription_identifier", "user_property"),
    ),
    Subscribe(5, [RequestedSubscription("+/kitchen/+"), RequestedSubscription("$share/group/home/#", 2)]),
    Unsubscribe(6, ["home/#", "$share/group/a"], _of("user_property")),
    PingReq(),
    Auth(0x19, _of("authentication_method", "authentication_data")),
    Disconnect(4, _of("session_expiry_interval", "reason_string")),
    Disconnect(),
]
OF_SERVER: list[Packet] = [
    ConnAck(True, 0, _of("topic_alias_maximum", "receive_maximum", "assigned_client_identifier")),
    ConnAck(False, 0x87, _TOLD),
    Publish(
        "home/kitchen/temp", b"21.5", 1, packet_id=7, properties={"subscription_identifier": [1, 70_000]}
    ),
    PubAck(1, 0x97, _TOLD),
    PubRel(3),
    SubAck(5, [0, 1, 2, 0x80], _TOLD),
    UnsubAck(6, [0, 0x11], _TOLD),
    PingResp(),
    Auth(0x18, _of("authentication_method", "authentication_data")),
    Disconnect(0x8E, _of("reason_string", "server_reference")),
]


def plain(packet: Packet) -> Packet | None:
    """Return what is left of a packet of version 5 in 3.1.1, None if there is no such packet."""
    changes: dict[str, Any] = {}
    if isinstance(packet, Auth) or (isinstance(packet, Publish) and not packet.topic):
        return None
    if hasattr(packet, "properties"):
        changes["properties"] = {}
    if isinstance(packet, PubAck | PubRec | PubRel | PubComp | Disconnect):
        changes["reason"] = 0
    if isinstance(packet, ConnAck):
        changes["reason"] = packet.reason % 6
        changes["session_present"] = packet.session_present and not packet.reason % 6
    if isinstance(packet, Connect):
        changes["version"] = V311
        changes["password"] = packet.password if packet.username is not None else None
        if packet.will is not None:
            changes["will"] = msgspec.structs.replace(packet.will, properties={})
    if isinstance(packet, Subscribe):
        changes["subscriptions"] = [
            RequestedSubscription(one.filter, one.qos) for one in packet.subscriptions
        ]
    if isinstance(packet, SubAck):
        changes["reasons"] = [min(reason, 0x80) for reason in packet.reasons]
    if isinstance(packet, UnsubAck):
        changes["reasons"] = []
    return msgspec.structs.replace(packet, **changes)


def all_packets(version: int, of_server: bool) -> list[Packet]:
    """The real packets of one version and direction; a client's begin with CONNECT."""
    found = OF_SERVER if of_server else OF_CLIENT
    return found if version == V5 else [less for packet in found if (less := plain(packet)) is not None]


def decoder(version: int, of_server: bool, largest: int = LARGEST) -> Decoder:
    """A decoder that is past CONNECT."""
    made = Decoder(largest, of_server)
    made.version = version
    return made


def decode(data: bytes, version: int = V5, of_server: bool = False) -> list[Packet]:
    """Return the packets of a stream; raise what is wrong in it."""
    made = Decoder(LARGEST) if data[:1] == b"\x10" else decoder(version, of_server)
    found = made.feed(data)
    if made.error is not None:
        raise made.error
    return found


def stream(version: int, of_server: bool) -> bytes:
    return b"".join(encode(packet, version) for packet in all_packets(version, of_server))


_sign = st.characters(exclude_categories=["Cs", "Cc"])
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
names = st.text(_sign, max_size=12)
topics = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="+#"), min_size=1, max_size=12
)
_levels = st.lists(st.just("+") | st.text("ab$é ", max_size=3), min_size=1, max_size=5)
filters = st.builds(
    lambda share, levels, rest: share + ("/".join(levels) + rest or "a"),
    st.sampled_from(["", "", "$share/group/"]),
    _levels,
    st.sampled_from(["", "/#"]),
).filter(lambda found: found != "$share" and not found.startswith("$share//"))
_byte = st.integers(0, 1)
_two, _four = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)
_binary = st.binary(max_size=20)
_qos = st.integers(0, 2)
_id = st.integers(1, 2**16 - 1)
_users = st.lists(st.tuples(texts, texts), min_size=1, max_size=4)

_DRAWN: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys((name for name, value in VALUES.items() if isinstance(value, str)), texts),
    **dict.fromkeys((name for name, value in VALUES.items() if isinstance(value, bytes)), _binary),
    **dict.fromkeys((name for name in VALUES if name.endswith("_interval")), _four),
    **dict.fromkeys((name for name, value in VALUES.items() if value in (0, 1)), _byte),
    "response_topic": topics,
    "server_keep_alive": _two,
    "topic_alias_maximum": _two,
    "receive_maximum": st.integers(1, 2**16 - 1),
    "topic_alias": st.integers(1, 2**16 - 1),
    "maximum_packet_size": st.integers(1, 2**32 - 1),
    "user_property": _users,
    "subscription_identifier": st.integers(1, 268_435_455).map(lambda one: [one]),
}


def drawn(*wanted: str) -> st.SearchStrategy[Any]:
    """Some of these properties."""
    return st.fixed_dictionaries({}, optional={name: _DRAWN[name] for name in wanted})


_told = drawn("reason_string", "user_property")
_message = (*_MESSAGE, "correlation_data", "user_property")
_will = st.builds(Will, topics, _binary, _qos, st.booleans(), drawn(*_message, "will_delay_interval"))
_connect = st.builds(
    Connect,
    st.just(V5),
    names,
    st.booleans(),
    _two,
    st.none() | _will,
    st.none() | names,
    st.none() | _binary,
    drawn(
        "session_expiry_interval",
        "receive_maximum",
        "maximum_packet_size",
        "topic_alias_maximum",
        "request_response_information",
        "request_problem_information",
        "authentication_method",
        "user_property",
    ),
)
_connack = st.builds(
    lambda present, reason, properties: ConnAck(present and not reason, reason, properties),
    st.booleans(),
    st.sampled_from(sorted(decoding.CONNACK_REASONS)),
    drawn(
        "session_expiry_interval",
        "receive_maximum",
        "maximum_qos",
        "retain_available",
        "maximum_packet_size",
        "assigned_client_identifier",
        "topic_alias_maximum",
        "reason_string",
        "user_property",
        "wildcard_subscription_available",
        "subscription_identifier_available",
        "shared_subscription_available",
        "server_keep_alive",
        "response_information",
        "server_reference",
        "authentication_method",
    ),
)


@st.composite
def publishes(draw: Any, of_server: bool) -> Publish:
    qos = draw(_qos)
    properties = draw(drawn(*_message, "topic_alias"))
    if of_server and draw(st.booleans()):
        properties["subscription_identifier"] = draw(
            st.lists(st.integers(1, 268_435_455), min_size=1, max_size=4)
        )
    topic = "" if "topic_alias" in properties and draw(st.booleans()) else draw(topics)
    dup = draw(st.booleans()) if qos else False
    packet_id = draw(_id) if qos else 0
    return Publish(topic, draw(st.binary(max_size=300)), qos, draw(st.booleans()), dup, packet_id, properties)


_received, _released = st.sampled_from([0, 0x10, 0x80, 0x99]), st.sampled_from([0, 0x92])
_either = [
    st.builds(PubAck, _id, _received, _told),
    st.builds(PubRec, _id, _received, _told),
    st.builds(PubRel, _id, _released, _told),
    st.builds(PubComp, _id, _released, _told),
]


def _no_local_on_shares(one: RequestedSubscription) -> RequestedSubscription:
    return msgspec.structs.replace(one, no_local=one.no_local and not one.filter.startswith("$share"))


_subscription = st.builds(RequestedSubscription, filters, _qos, st.booleans(), st.booleans(), _qos).map(
    _no_local_on_shares
)
client_packets: st.SearchStrategy[Packet] = st.one_of(
    _connect,
    publishes(of_server=False),
    *_either,
    st.builds(
        Subscribe,
        _id,
        st.lists(_subscription, min_size=1, max_size=4),
        drawn("subscription_identifier", "user_property"),
    ),
    st.builds(Unsubscribe, _id, st.lists(filters, min_size=1, max_size=4), drawn("user_property")),
    st.just(PingReq()),
    st.builds(
        Disconnect,
        st.sampled_from([0, 4, 0x80, 0x99]),
        drawn("session_expiry_interval", "reason_string", "user_property"),
    ),
    st.builds(
        Auth, st.sampled_from([0x18, 0x19]), st.just(_of("authentication_method", "authentication_data"))
    ),
)
server_packets: st.SearchStrategy[Packet] = st.one_of(
    _connack,
    publishes(of_server=True),
    *_either,
    st.builds(SubAck, _id, st.lists(st.sampled_from([0, 1, 2, 0x80, 0xA2]), min_size=1, max_size=5), _told),
    st.builds(UnsubAck, _id, st.lists(st.sampled_from([0, 0x11, 0x87]), min_size=1, max_size=5), _told),
    st.just(PingResp()),
    st.builds(Disconnect, st.sampled_from([0x80, 0x8E, 0xA2]), drawn("reason_string", "server_reference")),
    st.builds(Auth, st.sampled_from([0, 0x18]), st.just(_of("authentication_method"))),
)
