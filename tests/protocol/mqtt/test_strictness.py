"""What the standard forbids is refused, and with which reason; hex by hand, a row for each rule.

Where the standard names no reason, or two, the rows say what mosquitto's public packet sequences expect.
"""

from __future__ import annotations

import pytest
from mqtt_examples import OF_CLIENT, OF_SERVER, VALUES, decode, decoder

from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.wire import properties as table
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.fields import variable
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Connect,
    Disconnect,
    Publish,
    RequestedSubscription,
    Subscribe,
)
from hushcast_protocol.mqtt.wire.properties import (
    MAX_PROPERTIES,
    MAX_USER_PROPERTIES,
    PacketType,
    write_properties,
)

MALFORMED, PROTOCOL = Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR
VERSION, ALIAS, QUOTA = Reason.UNSUPPORTED_PROTOCOL_VERSION, Reason.TOPIC_ALIAS_INVALID, Reason.QUOTA_EXCEEDED


def refusal(sent: bytes, version: int, of_server: bool = False) -> PacketError:
    made = decoder(version, of_server) if version else Decoder(1 << 20)
    with pytest.raises(PacketError) as found:
        made.feed(sent)
    assert made.error is not None
    assert vars(made.error) == vars(found.value)
    return found.value


def framed(first: int, body: bytes) -> bytes:
    return bytes((first,)) + variable(len(body)) + body


def rows(text: str) -> list[tuple[str, str]]:
    return [
        (what.strip(), sent) for line in text.strip().splitlines() for what, _, sent in [line.partition(":")]
    ]


def each(text: str) -> pytest.MarkDecorator:
    found = rows(text)
    return pytest.mark.parametrize("sent", [sent for _, sent in found], ids=[what for what, _ in found])


# CONNECT, of a client that has sent nothing yet. Name, level, flags, keep alive, (properties,) client id …


@each("""
reserved flags 1:                 11 0d 0004 4d515454 04 02 000a 0001 70
reserved flags 8:                 18 0d 0004 4d515454 04 02 000a 0001 70
reserved connect flag:            10 0d 0004 4d515454 04 03 000a 0001 70
reserved connect flag, 5:         10 0e 0004 4d515454 05 03 000a 00 0001 70
will QoS 3:                       10 13 0004 4d515454 04 1e 000a 0001 70 0001 70 0001 70
will QoS without will:            10 0d 0004 4d515454 04 0a 000a 0001 70
will retain without will:         10 0d 0004 4d515454 04 22 000a 0001 70
password without user name:       10 10 0004 4d515454 04 42 000a 0001 70 0001 70
no client id:                     10 0a 0004 4d515454 04 02 000a
no will though flagged:           10 0d 0004 4d515454 04 06 000a 0001 70
no will payload:                  10 10 0004 4d515454 04 06 000a 0001 70 0001 70
empty will topic:                 10 12 0004 4d515454 04 06 000a 0001 70 0000 0001 70
wildcard will topic:              10 13 0004 4d515454 04 06 000a 0001 70 0001 23 0001 70
no user name though flagged:      10 0d 0004 4d515454 04 82 000a 0001 70
no password though flagged:       10 10 0004 4d515454 04 c2 000a 0001 70 0001 70
bytes left over:                  10 10 0004 4d515454 04 02 000a 0001 70 0001 70
U+0000 in the client id:          10 0e 0004 4d515454 04 02 000a 0002 7000
a surrogate in the client id:     10 0f 0004 4d515454 04 02 000a 0003 eda080
not UTF-8 in the client id:       10 0e 0004 4d515454 04 02 000a 0002 c328
overlong UTF-8 in the client id:  10 0e 0004 4d515454 04 02 000a 0002 c080
cut short UTF-8 in the client id: 10 0e 0004 4d515454 04 02 000a 0002 70c3
a control sign in the client id:  10 0e 0004 4d515454 04 02 000a 0002 7001
a control sign in the user name:  10 11 0004 4d515454 04 82 000a 0001 70 0002 707f
U+0000 in the will topic:         10 14 0004 4d515454 04 06 000a 0001 70 0002 7000 0001 70
no properties in 5:               10 0d 0004 4d515454 05 02 000a 0001 70
properties beyond the packet:     10 0e 0004 4d515454 05 02 000a 7f 0001 70
length of five bytes:             10 ff ff ff ff 7f 0004 4d515454 04
length with a byte too many:      10 8d 00 0004 4d515454 04 02 000a 0001 70
length of three bytes for two:    10 80 81 00
""")
def test_a_malformed_connect(sent: str) -> None:
    error = refusal(bytes.fromhex(sent), 0)
    assert error.reason == MALFORMED
    assert error.form == (V5 if "4d515454 05" in sent else None)


@each("""
anything else first:              c0 00
PUBLISH first:                    30 05 0001 61 6869
reserved type 0:                  00 00
AUTH first:                       f0 00
CONNACK of a client:              20 02 00 00
""")
def test_what_is_not_a_connect_comes_never_first(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), 0).reason == PROTOCOL


@pytest.mark.parametrize("version", [V311, V5])
def test_connect_comes_once(version: int) -> None:
    made = Decoder(1000)
    sent = encode(Connect(version, "me"), version)
    assert len(made.feed(sent + sent)) == 1
    assert made.error is not None
    assert made.error.reason == PROTOCOL


@pytest.mark.parametrize(
    ("sent", "form"),
    [
        ("100f 0006 4d5149736470 03 02 000a 0001 70", V311),
        ("100f 0006 4d5149736470 06 02 000a 0001 70", V5),
        ("100d 0004 4d515454 03 02 000a 0001 70", V311),
        ("100d 0004 4d515454 06 02 000a 0001 70", V5),
        ("100d 0004 4d515454 84 02 000a 0001 70", V311),
        ("1007 0004 4d515454 00", V311),
        ("100d 0004 4d515455 04 02 000a 0001 70", None),
        ("100c 0003 4d5154 04 02 000a 0001 70", None),
        ("1009 0000 04 02 000a 0001 70", None),
    ],
    ids=["3.1", "MQIsdp 6", "3", "6", "a bridge", "0", "other name", "short name", "no name"],
)
def test_versions_that_are_not_spoken_are_refused_in_a_known_form(sent: str, form: int | None) -> None:
    error = refusal(bytes.fromhex(sent), 0)
    assert error.reason == VERSION
    assert error.form == form


def test_a_password_needs_no_user_name_in_version_5() -> None:
    sent = Connect(V5, "me", password=b"\x00")
    assert decode(encode(sent, V5)) == [sent]


# After CONNECT, of clients.


@each("""
PUBLISH, DUP with QoS 0:          38 05 0001 61 6869
PUBLISH, QoS 3:                   36 05 0001 61 6869
PUBLISH, no topic:                30 02 0000
PUBLISH, wildcard #:              30 05 0001 23 6869
PUBLISH, wildcard +:              30 07 0003 612f2b 6869
PUBLISH, U+0000:                  30 06 0002 6100 6869
PUBLISH, a surrogate:             30 07 0003 eda080 6869
PUBLISH, not UTF-8:               30 05 0001 ff 6869
PUBLISH, a control sign:          30 05 0001 1f 6869
PUBLISH, topic cut short:         30 03 0002 61
PUBLISH, length of a topic alone: 30 01 00
PUBLISH, empty:                   30 00
PUBLISH, no packet id:            32 03 0001 61
PUBLISH, half a packet id:        32 04 0001 61 00
PUBACK, flags:                    41 02 0001
PUBACK, empty:                    40 00
PUBACK, half an id:               40 01 01
PUBREC, flags:                    52 02 0001
PUBREL, flags 0:                  60 02 0001
PUBREL, flags 3:                  63 02 0001
PUBCOMP, flags:                   74 02 0001
SUBSCRIBE, flags:                 80 06 1234 0001 61 00
SUBSCRIBE, flags 3:               83 06 1234 0001 61 00
SUBACK, flags:                    91 03 0001 00
UNSUBSCRIBE, flags:               a0 05 1234 0001 61
PINGREQ, flags:                   c1 00
PINGREQ, a body:                  c0 01 00
DISCONNECT, flags:                e1 00
""")
@pytest.mark.parametrize("version", [V311, V5])
def test_malformed_in_both_versions(version: int, sent: str) -> None:
    assert refusal(bytes.fromhex(sent), version).reason == MALFORMED


@each("""
PUBACK, bytes left over:          40 03 0001 00
PUBREL, bytes left over:          62 03 0001 00
SUBSCRIBE, without filters:       82 02 1234
SUBSCRIBE, empty filter:          82 05 1234 0000 00
SUBSCRIBE, no options:            82 05 1234 0001 61
SUBSCRIBE, QoS 3:                 82 06 1234 0001 61 03
SUBSCRIBE, options of version 5:  82 06 1234 0001 61 04
SUBSCRIBE, reserved option:       82 06 1234 0001 61 80
SUBSCRIBE, bytes left over:       82 07 1234 0001 61 00 00
SUBSCRIBE, a## as filter:         82 08 1234 0003 612323 00
SUBSCRIBE, #/a as filter:         82 08 1234 0003 232f61 00
SUBSCRIBE, a+ as filter:          82 07 1234 0002 612b 00
SUBSCRIBE, U+0000:                82 07 1234 0002 6100 00
SUBSCRIBE, a surrogate:           82 08 1234 0003 eda080 00
UNSUBSCRIBE, without filters:     a2 02 1234
UNSUBSCRIBE, empty filter:        a2 04 1234 0000
UNSUBSCRIBE, second one empty:    a2 07 1234 0001 61 0000
UNSUBSCRIBE, a# as filter:        a2 06 1234 0002 6123
DISCONNECT, bytes left over:      e0 01 00
""")
def test_malformed_in_version_3(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), V311).reason == MALFORMED


@each("""
PUBLISH, no properties:           32 05 0001 61 1234
PUBLISH, properties too long:     30 05 0001 61 05 00
PUBLISH, length of five bytes:    30 09 0001 61 ffffffff7f 00
PUBLISH, length not the shortest: 30 05 0001 61 8000
PUBLISH, unknown property 0:      30 06 0001 61 02 0000
PUBLISH, unknown property 4:      30 06 0001 61 02 0400
PUBLISH, unknown property 2b:     30 06 0001 61 02 2b00
PUBLISH, unknown property 8001:   30 07 0001 61 03 800100
PUBLISH, property cut short:      30 05 0001 61 01 01
PUBLISH, text cut short:          30 07 0001 61 03 030002
PUBLISH, pair without a value:    30 08 0001 61 04 26000161
PUBLISH, content type not UTF-8:  30 08 0001 61 04 030001ff
PUBLISH, content type U+0000:     30 08 0001 61 04 03000100
PUBLISH, response not UTF-8:      30 08 0001 61 04 080001ff
PUBLISH, user property not UTF-8: 30 0a 0001 61 06 2600000001ff
PUBLISH, user property U+0000:    30 0a 0001 61 06 260001000000
PUBLISH, identifier cut short:    30 06 0001 61 02 0b80
PUBLISH, identifier of 5 bytes:   30 0a 0001 61 06 0b8080808001
PUBACK, bytes left over:          40 05 0001 00 00 00
PUBACK, properties too long:      40 04 0001 00 01
SUBSCRIBE, without properties:    82 02 1234
SUBSCRIBE, without filters:       82 03 1234 00
SUBSCRIBE, empty filter:          82 06 1234 00 0000 00
SUBSCRIBE, no options:            82 06 1234 00 0001 61
SUBSCRIBE, QoS 3:                 82 07 1234 00 0001 61 03
SUBSCRIBE, retain handling 3:     82 07 1234 00 0001 61 30
SUBSCRIBE, reserved option 40:    82 07 1234 00 0001 61 40
SUBSCRIBE, reserved option 80:    82 07 1234 00 0001 61 80
SUBSCRIBE, bytes left over:       82 08 1234 00 0001 61 00 00
SUBSCRIBE, misplaced property:    82 09 1234 02 0100 0001 61 00
SUBSCRIBE, identifier 0:          82 09 1234 02 0b00 0001 61 00
SUBSCRIBE, not UTF-8:             82 07 1234 00 0001 ff 00
SUBSCRIBE, a/#/b as filter:       82 0b 1234 00 0005 612f232f62 00
UNSUBSCRIBE, without filters:     a2 03 1234 00
UNSUBSCRIBE, empty filter:        a2 05 1234 00 0000
UNSUBSCRIBE, not UTF-8:           a2 06 1234 00 0001 ff
UNSUBSCRIBE, misplaced property:  a2 08 1234 02 0b01 0001 61
DISCONNECT, properties too long:  e0 03 00 01 00
DISCONNECT, bytes left over:      e0 03 00 00 00
""")
def test_malformed_in_version_5(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), V5).reason == MALFORMED


@each("""
reserved type 0:                  00 00
reserved type 0 with a body:      00 01 00
CONNACK of a client:              20 02 00 00
SUBACK of a client:               90 03 0001 00
UNSUBACK of a client:             b0 02 0001
PINGRESP of a client:             d0 00
PUBLISH, packet id 0:             32 05 0001 61 0000
PUBACK, packet id 0:              40 02 0000
PUBREC, packet id 0:              50 02 0000
PUBREL, packet id 0:              62 02 0000
PUBCOMP, packet id 0:             70 02 0000
SUBSCRIBE, packet id 0:           82 06 0000 0001 61 00
UNSUBSCRIBE, packet id 0:         a2 05 0000 0001 61
AUTH without a method:            f0 00
AUTH, flags:                      f1 00
""")
@pytest.mark.parametrize("version", [V311, V5])
def test_protocol_errors_in_both_versions(version: int, sent: str) -> None:
    assert refusal(bytes.fromhex(sent), version).reason == PROTOCOL


@each("""
PUBLISH, format 2:                30 06 0001 61 02 0102
PUBLISH, format twice:            30 08 0001 61 04 01000100
PUBLISH, expiry twice:            30 0e 0001 61 0a 02000000000200000000
PUBLISH, alias twice:             30 0a 0001 61 06 230001230001
PUBLISH, identifier twice:        30 08 0001 61 04 0b010b01
PUBLISH, identifier 0:            30 06 0001 61 02 0b00
PUBLISH, reason string:           30 08 0001 61 04 1f000161
PUBLISH, response to a wildcard:  30 08 0001 61 04 08000123
PUBLISH, empty response topic:    30 07 0001 61 03 080000
PUBACK, unknown reason:           40 04 0001 ff 00
PUBACK, a reason of others:       40 03 0001 01
PUBREC, unknown reason:           50 03 0001 92
PUBREL, a reason of others:       62 03 0001 10
PUBCOMP, a reason of others:      70 03 0001 80
PUBACK, reason string twice:      40 0c 0001 00 08 1f0001611f000162
PUBACK, misplaced property:       40 06 0001 00 02 0100
SUBSCRIBE, identifier twice:      82 0b 1234 04 0b010b01 0001 61 00
SUBSCRIBE, $share:                82 0c 1234 00 0006 247368617265 00
SUBSCRIBE, $share/g:              82 0e 1234 00 0008 2473686172652f67 00
SUBSCRIBE, $share/g/:             82 0f 1234 00 0009 2473686172652f672f 00
SUBSCRIBE, $share//a:             82 0f 1234 00 0009 2473686172652f2f61 00
SUBSCRIBE, $share/+/a:            82 10 1234 00 000a 2473686172652f2b2f61 00
SUBSCRIBE, shared and No Local:   82 10 1234 00 000a 2473686172652f672f61 04
DISCONNECT, unknown reason:       e0 01 05
DISCONNECT, a server's reason:    e0 01 8e
DISCONNECT, server reference:     e0 06 00 04 1c000161
AUTH, unknown reason:             f0 07 17 05 15 0002 6161
AUTH, a server's success:         f0 02 00 00
AUTH, no method:                  f0 02 18 00
AUTH, data without a method:      f0 06 18 04 16000161
""")
def test_protocol_errors_in_version_5(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), V5).reason == PROTOCOL


@each("""
receive maximum 0:                10 11 0004 4d515454 05 02 000a 03 210000 0001 70
maximum packet size 0:            10 13 0004 4d515454 05 02 000a 05 2700000000 0001 70
request problem information 2:    10 10 0004 4d515454 05 02 000a 02 1702 0001 70
request response information 2:   10 10 0004 4d515454 05 02 000a 02 1902 0001 70
will delay outside the will:      10 13 0004 4d515454 05 02 000a 05 1800000000 0001 70
a message's property:             10 10 0004 4d515454 05 02 000a 02 0100 0001 70
authentication data alone:        10 12 0004 4d515454 05 02 000a 04 16000161 0001 70
session expiry in the will:       10 1a 0004 4d515454 05 06 000a 00 0001 70 05 1100000000 0001 70 0001 70
session expiry twice:             10 18 0004 4d515454 05 02 000a 0a 11000000001100000000 0001 70
""")
def test_protocol_errors_in_connect(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), 0).reason == PROTOCOL


def test_alias_0_has_a_reason_of_its_own() -> None:
    assert refusal(bytes.fromhex("3007 0001 61 03 230000"), V5).reason == ALIAS


def test_auth_is_unknown_in_version_3() -> None:
    assert refusal(bytes.fromhex("f009 18 07 150004 53435241"), V311).reason == PROTOCOL


@each("""
CONNACK, reserved flags:          20 03 02 00 00
CONNACK, empty:                   20 00
CONNACK, bytes left over:         20 04 00 00 00 00
SUBACK, without reasons:          90 03 0001 00
UNSUBACK, without reasons:        b0 03 0001 00
PINGRESP, a body:                 d0 01 00
UNSUBACK, flags:                  b2 04 0001 00 00
""")
def test_malformed_of_servers(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), V5, of_server=True).reason == MALFORMED


@each("""
CONNECT of a server:              10 0e 0004 4d515454 05 02 000a 00 0001 70
SUBSCRIBE of a server:            82 07 1234 00 0001 61 00
UNSUBSCRIBE of a server:          a2 06 1234 00 0001 61
PINGREQ of a server:              c0 00
CONNACK, unknown reason:          20 03 00 01 00
CONNACK, session and refusal:     20 03 01 80 00
CONNACK, maximum QoS 2:           20 05 00 00 02 2402
SUBACK, unknown reason:           90 04 0001 00 03
UNSUBACK, unknown reason:         b0 04 0001 00 01
PUBLISH, identifier 0:            30 06 0001 61 02 0b00
DISCONNECT, a client's reason:    e0 01 04
DISCONNECT, session expiry:       e0 07 80 05 1100000000
AUTH, a client's reason:          f0 06 19 04 15000161
""")
def test_protocol_errors_of_servers(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), V5, of_server=True).reason == PROTOCOL


@each("""
CONNACK, unknown return code:     20 02 00 06
SUBACK, unknown return code:      90 03 0001 03
""")
def test_protocol_errors_of_servers_in_version_3(sent: str) -> None:
    assert refusal(bytes.fromhex(sent), V311, of_server=True).reason == PROTOCOL


def test_connections_that_a_disconnect_or_a_ping_ends_get_no_answer() -> None:
    for sent, silent in (
        ("e00105", True),
        ("e0018e", True),
        ("c00100", True),
        ("e00281ff", False),
        ("c100", False),
    ):
        assert refusal(bytes.fromhex(sent), V5).silent is silent


# Properties: each in each place.


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("place", PacketType, ids=lambda kind: kind.name)
def test_each_property_stands_in_its_packets_only(place: PacketType, name: str) -> None:
    if place in (PacketType.PINGREQ, PacketType.PINGRESP):
        return
    of_server = place in (PacketType.CONNACK, PacketType.SUBACK, PacketType.UNSUBACK)
    of_server = of_server or (place == PacketType.DISCONNECT and name == "server_reference")
    block = write_properties({name: VALUES[name]})  # type: ignore[misc]
    if name == "authentication_data":
        block = write_properties({"authentication_method": "m", "authentication_data": b""})
    connect = b"\x00\x04MQTT\x05"
    bodies = {
        PacketType.CONNECT: connect + b"\x02\x00\x00" + block + b"\x00\x00",
        PacketType.WILL: connect + b"\x06\x00\x00\x00\x00\x00" + block + b"\x00\x01a\x00\x00",
        PacketType.CONNACK: b"\x00\x00" + block,
        PacketType.PUBLISH: b"\x00\x01a" + block,
        PacketType.SUBSCRIBE: b"\x00\x01" + block + b"\x00\x01a\x00",
        PacketType.UNSUBSCRIBE: b"\x00\x01" + block + b"\x00\x01a",
        PacketType.SUBACK: b"\x00\x01" + block + b"\x00",
        PacketType.UNSUBACK: b"\x00\x01" + block + b"\x00",
        PacketType.DISCONNECT: b"\x80" + block,
        PacketType.AUTH: b"\x18"
        + (block if name.startswith("authentication") else framed(0, b"\x15\x00\x00" + block[1:])[1:]),
    }
    body = bodies.get(place, b"\x00\x01\x00" + block)
    first = (1 if place == PacketType.WILL else place) << 4 | (2 if place in (6, 8, 10) else 0)
    sent = framed(first, body)
    allowed = place in table._BY_NAME[name].places
    assert allowed == (place.name.lower() in _PLACES[name].split())
    if allowed:
        assert len(decode(sent, V5, of_server)) == 1
    else:
        either = (PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE)
        version = 0 if place in (PacketType.CONNECT, PacketType.WILL) else V5
        assert refusal(sent, version, of_server).reason == (MALFORMED if place in either else PROTOCOL)


_ACKS = "puback pubrec pubrel pubcomp suback unsuback"
_PLACES = {  # the standard's own table, once more by hand
    "payload_format_indicator": "publish will",
    "message_expiry_interval": "publish will",
    "content_type": "publish will",
    "response_topic": "publish will",
    "correlation_data": "publish will",
    "subscription_identifier": "publish subscribe",
    "session_expiry_interval": "connect connack disconnect",
    "assigned_client_identifier": "connack",
    "server_keep_alive": "connack",
    "authentication_method": "connect connack auth",
    "authentication_data": "connect connack auth",
    "request_problem_information": "connect",
    "will_delay_interval": "will",
    "request_response_information": "connect",
    "response_information": "connack",
    "server_reference": "connack disconnect",
    "reason_string": f"connack disconnect auth {_ACKS}",
    "receive_maximum": "connect connack",
    "topic_alias_maximum": "connect connack",
    "topic_alias": "publish",
    "maximum_qos": "connack",
    "retain_available": "connack",
    "user_property": f"connect connack publish will subscribe unsubscribe disconnect auth {_ACKS}",
    "maximum_packet_size": "connect connack",
    "wildcard_subscription_available": "connack",
    "subscription_identifier_available": "connack",
    "shared_subscription_available": "connack",
}


def test_a_block_that_is_cut_short_is_malformed_whatever_else_is_wrong() -> None:
    assert refusal(bytes.fromhex("3007 0001 61 03 1700 01"), V5).reason == MALFORMED


def test_a_client_s_subscription_identifier_is_ignored() -> None:
    assert decode(bytes.fromhex("3008 0001 61 02 0b07 6869")) == [Publish("a", b"hi")]


# What is more than we take, though the standard would.


@pytest.mark.parametrize(
    ("count", "size"),
    [(MAX_USER_PROPERTIES + 1, 0), (37_000, 0), (1, MAX_PROPERTIES)],
    ids=["65", "37,000", "8 KiB"],
)
def test_too_many_properties(count: int, size: int) -> None:
    block = write_properties({"user_property": [("", "")] * (count - 1) + [("", "x" * size)]})
    assert refusal(framed(0x30, b"\x00\x01a" + block), V5).reason == QUOTA


def test_as_many_properties_as_are_taken() -> None:
    pairs = [("", "")] * (MAX_USER_PROPERTIES - 1)
    size = MAX_PROPERTIES - 5 * len(pairs) - 5
    assert decode(encode(Publish("a", b"", properties={"user_property": [*pairs, ("", "x" * size)]}), V5))
    with pytest.raises(PacketError):
        decode(encode(Publish("a", b"", properties={"user_property": [*pairs, ("", "x" * (size + 1))]}), V5))


# What looks odd and is allowed.


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize(
    "topic", ["/", "//", " ", "\u00a0", "\ufffe", "\ufeffa", "\ufdd0", "\U0010ffff", "$SYS/x", "x" * 65_535]
)
def test_odd_topics_are_allowed(topic: str, version: int) -> None:
    assert decode(encode(Publish(topic, b""), version), version) == [Publish(topic, b"")]


def test_an_empty_topic_with_an_alias_is_allowed_in_version_5() -> None:
    sent = Publish("", b"x", properties={"topic_alias": 1})
    assert decode(encode(sent, V5)) == [sent]


def test_a_control_character_in_what_is_no_name_is_allowed() -> None:
    sent = Publish("a", b"\x00", properties={"content_type": "a\nb", "user_property": [("\x01", "\x9f")]})
    assert decode(encode(sent, V5)) == [sent]


def test_more_levels_than_are_taken_are_left_to_who_can_answer() -> None:
    deep = "/".join("x" * 40)
    sent = Subscribe(1, [RequestedSubscription(deep)])
    assert decode(encode(sent, V311), V311) == [sent]


def test_every_reason_of_the_examples_is_one_that_the_packet_may_have() -> None:
    for of_server, packets in ((False, OF_CLIENT), (True, OF_SERVER)):
        for packet in packets:
            assert decode(encode(packet, V5), V5, of_server) == [packet]
    for reason in (0, 4, 0x80, 0x81, 0x82, 0x83, 0x90, *range(0x93, 0x9A)):
        assert decode(encode(Disconnect(reason), V5)) == [Disconnect(reason)]
