"""The codec: what is written is read again, however the stream is cut; and only `PacketError` comes out."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from core_examples import properties as examples
from hypothesis import given
from hypothesis import strategies as st
from mqtt_examples import (
    OF_CLIENT,
    OF_SERVER,
    WILL,
    all_packets,
    client_packets,
    decode,
    decoder,
    plain,
    publishes,
    server_packets,
    stream,
)
from msgspec.structs import replace

from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.wire.codec import UNIT, Decoder, encode, encode_publish
from hushcast_protocol.mqtt.wire.fields import text
from hushcast_protocol.mqtt.wire.packets import (
    NONE,
    V5,
    V311,
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PubAck,
    Publish,
    RequestedSubscription,
    SubAck,
    Subscribe,
)

BOTH = pytest.mark.parametrize("version", [V311, V5])
EITHER = pytest.mark.parametrize("of_server", [False, True], ids=["client", "server"])


@EITHER
def test_every_real_packet_is_read_as_it_was_written(of_server: bool) -> None:
    for packet in OF_SERVER if of_server else OF_CLIENT:
        assert decode(encode(packet, V5), V5, of_server) == [packet]
        less = plain(packet)
        if less is not None:
            assert decode(encode(less, V311), V311, of_server) == [less]


@pytest.mark.slow
@given(packet=client_packets)
@examples(400)
def test_any_packet_of_a_client_is_read_as_it_was_written(packet: Packet) -> None:
    assert decode(encode(packet, V5)) == [packet]
    less = plain(packet)
    if less is not None:
        assert decode(encode(less, V311), V311) == [less]


@pytest.mark.slow
@given(packet=server_packets)
@examples(400)
def test_any_packet_of_a_server_is_read_as_it_was_written(packet: Packet) -> None:
    assert decode(encode(packet, V5), of_server=True) == [packet]
    less = plain(packet)
    if less is not None:
        assert decode(encode(less, V311), V311, of_server=True) == [less]


@pytest.mark.slow
@BOTH
@EITHER
@given(data=st.data())
@examples(30)
def test_however_a_stream_is_cut_its_packets_are_the_same(
    version: int, of_server: bool, data: st.DataObject
) -> None:
    packets = all_packets(version, of_server)
    if not of_server:
        packets = [packets[0], *(one for one in packets if not isinstance(one, Connect))]
    whole = b"".join(encode(packet, version) for packet in packets)
    made = Decoder(1000, of_server)
    made.version = version if of_server else 0
    found: list[Packet] = []
    while whole:
        size = data.draw(st.integers(1, 60))
        found += made.feed(whole[:size], data.draw(st.integers(1, 3)))
        while made.has_more:
            found += made.feed(b"", 1)
        whole = whole[size:]
    assert found == packets
    assert made.error is None


@BOTH
@EITHER
def test_byte_by_byte_is_the_same_as_all_at_once(version: int, of_server: bool) -> None:
    packets = all_packets(version, of_server)
    for packet in packets:
        made = decoder(version, of_server) if not isinstance(packet, Connect) else Decoder(1000)
        found = [one for byte in encode(packet, version) for one in made.feed(bytes((byte,)))]
        assert found == [packet]


@given(publish=publishes(of_server=True), version=st.sampled_from([V311, V5]))
@examples(200)
def test_a_publish_without_properties_is_the_same_the_short_way(publish: Publish, version: int) -> None:
    bare = replace(publish, topic=publish.topic or "by/alias", properties=NONE)
    flags = bare.dup << 3 | bare.qos << 1 | bare.retain
    sent = encode_publish(text(bare.topic), bare.payload, version, flags, bare.packet_id)
    assert sent == encode(bare, version)


@pytest.mark.parametrize("size", [0, 100, 127, 128, 16_383, 16_384, 200_000])
def test_payloads_of_any_size(size: int) -> None:
    sent = Publish("a", bytes(size))
    assert decode(encode(sent, V5)) == [sent]
    assert encode_publish(text("a"), bytes(size), V5) == encode(sent, V5)


@pytest.mark.parametrize(
    ("packet", "at_once"),
    [
        (PingReq(), 8),
        (Publish("a", bytes(10 * UNIT)), 8),
        (Publish("a" * 2 * UNIT, b""), 3),
        (Publish("a", b"", properties={"user_property": [("a", "b")] * UNIT}), 1),
        (Subscribe(1, [RequestedSubscription("a" * 4 * UNIT)]), 2),
    ],
    ids=["pings", "payloads", "topics", "properties", "filters"],
)
def test_what_is_taken_apart_at_once_is_bounded_by_what_takes_time(packet: Packet, at_once: int) -> None:
    made = Decoder(100_000)
    made.feed(encode(Connect(V5, ""), V5))
    counts = [len(made.feed(encode(packet, V5) * 20, 8))]
    while made.has_more:
        counts.append(len(made.feed(b"", 8)))
    assert counts[0] == at_once
    assert (max(counts), sum(counts)) == (at_once, 20)


def test_properties_stand_in_the_order_given() -> None:
    first = encode(ConnAck(properties={"topic_alias_maximum": 10, "receive_maximum": 20}), V5)
    assert first.hex() == "200900000622000a210014"


@pytest.mark.parametrize(
    ("packet", "version", "sent"),
    [
        (Disconnect(0x81), V5, "e00181"),
        (Disconnect(), V5, "e000"),
        (Disconnect(0x81, {"reason_string": "x"}), V311, "e000"),
        (PubAck(1), V5, "40020001"),
        (PubAck(1, 0x10), V5, "4003000110"),
        (PubAck(1, 0x97), V311, "40020001"),
        (SubAck(1, [0x97, 1]), V311, "900400018001"),
        (ConnAck(reason=1), V311, "20020001"),
        (Auth(), V5, "f000"),
        (ConnAck(), V5, "2003000000"),
        (Publish("a", b"", packet_id=7), V5, "300400016100"),
        (Publish("a", b"", 1, packet_id=7), V5, "3206000161000700"),
    ],
)
def test_what_is_none_is_left_out(packet: Packet, version: int, sent: str) -> None:
    assert encode(packet, version).hex() == sent


@pytest.mark.parametrize(
    ("packet", "version"),
    [
        (Auth(), V311),
        (Publish("x" * 65_536, b""), V5),
        (Publish("\ud800", b""), V5),
        (Publish("x", bytes(268_435_456)), V5),
        (Disconnect(0x80, {"reason_string": "x" * 65_536}), V5),
        (ConnAck(properties={"receive_maximum": 65_536}), V5),
    ],
    ids=["AUTH", "topic", "surrogate", "payload", "text", "number"],
)
def test_what_fits_no_packet_is_not_written(packet: Packet, version: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        encode(packet, version)


def test_a_server_learns_the_version_and_a_client_is_told() -> None:
    server = Decoder(100)
    assert server.version == 0
    server.feed(encode(Connect(V311, "me"), V311))
    assert server.version == V311
    assert Decoder(100, of_server=True).version == V5


@BOTH
def test_packets_before_a_wrong_one_are_given_out_and_none_after_it(version: int) -> None:
    made = Decoder(100)
    good = encode(Connect(version, "me"), version) + encode(PingReq(), version)
    assert len(made.feed(good + b"\xc1\x00" + encode(PingReq(), version))) == 2
    assert made.error is not None
    assert made.error.reason == Reason.MALFORMED_PACKET
    for _ in range(2):
        with pytest.raises(PacketError):
            made.feed(encode(PingReq(), version))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_payload_is_no_view_of_a_buffer(kind: Callable[[bytes], bytes | bytearray | memoryview]) -> None:
    sent = encode(Publish("a", b"payload"), V5)
    for pieces in ([sent], [sent[:1], sent[1:]], [sent[:8], sent[8:]]):
        made = decoder(V5, False)
        (found,) = [one for piece in pieces for one in made.feed(kind(piece))]
        assert isinstance(found, Publish)
        assert type(found.payload) is bytes


def test_an_error_told_again_does_not_grow() -> None:
    made = decoder(V5, False)
    for _ in range(3):
        with pytest.raises(PacketError) as found:
            made.feed(b"\xff\x00")
    assert len(found.traceback) == 2


def test_a_packet_too_large_is_refused_by_its_header_alone() -> None:
    made = Decoder(1000, max_connect=50)
    for header in (b"\x10\x31", b"\x10\xff\xff\xff\x7f"):
        with pytest.raises(PacketError) as found:
            Decoder(1000, max_connect=50).feed(header)
        assert found.value.reason == Reason.PACKET_TOO_LARGE
    assert Decoder(1000, max_connect=51).feed(b"\x10\x31") == []
    made.feed(encode(Connect(V5, "me"), V5))
    assert made.feed(b"\x30\xe5\x07") == []  # 1,000 bytes with these three
    again = decoder(V5, False, 1000)
    with pytest.raises(PacketError) as found:
        again.feed(b"\x30\xe6\x07")
    assert found.value.reason == Reason.PACKET_TOO_LARGE


@pytest.mark.slow
def test_bytes_that_trickle_in_are_not_copied_again_and_again() -> None:
    """Quadratic copying of this packet would move 4 GB, in some seconds; here it is a megabyte or two."""
    sent = encode(Publish("a", bytes(90_000)), V5)
    made = decoder(V5, False)
    tracemalloc.start()
    try:
        for at in range(len(sent) - 1):
            made.feed(sent[at : at + 1])
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()
    assert made.feed(sent[-1:]) == [Publish("a", bytes(90_000))]
    assert made._kept == b""


@EITHER
@BOTH
def test_only_packet_errors_come_out_of_damaged_streams(version: int, of_server: bool) -> None:
    random = Random(f"{version} {of_server}")
    whole = stream(version, of_server)
    for _ in range(1000):
        data = bytearray(whole)
        for _ in range(random.randrange(1, 5)):
            at = random.randrange(len(data))
            data[at : at + random.randrange(3)] = random.randbytes(random.randrange(3))
        made = Decoder(5000, of_server)
        start = random.choice((0, len(whole) // 2))
        made.version = version if of_server or start else 0
        with suppress(PacketError):
            made.feed(bytes(data[start:]))


@pytest.mark.slow
@given(data=st.binary(max_size=200), version=st.sampled_from([0, V311, V5]), of_server=st.booleans())
@examples(500)
def test_only_packet_errors_come_out_of_any_bytes(data: bytes, version: int, of_server: bool) -> None:
    made = Decoder(5000, of_server)
    made.version = V5 if of_server and not version else version
    with suppress(PacketError):
        made.feed(data)
    assert made.error is None or isinstance(made.error.reason, Reason)


@EITHER
@BOTH
def test_every_truncation_waits_or_is_refused(version: int, of_server: bool) -> None:
    for packet in all_packets(version, of_server):
        sent = encode(packet, version)
        for size in range(len(sent)):
            made = decoder(version, of_server) if not isinstance(packet, Connect) else Decoder(1000)
            assert made.feed(sent[:size]) == []
        for size in range(2, len(sent)):  # the same with a remaining length that says so
            made = decoder(version, of_server) if not isinstance(packet, Connect) else Decoder(1000)
            found: list[Packet] = []
            with suppress(PacketError):
                found = made.feed(bytes((sent[0], size - 2)) + sent[2:size])
            assert packet not in found
            assert found or (made.error is not None and made.error.reason in (0x81, 0x82))


def test_an_error_and_a_packet_show_nothing_of_what_was_sent() -> None:
    assert "wills" not in repr(WILL)
    for packet in (*OF_CLIENT, *OF_SERVER):
        for secret in ("kitchen", "sensor", "secret", "21.5", "user", "group"):
            assert secret not in repr(packet) or not isinstance(packet, Connect | Publish)
    with pytest.raises(PacketError) as found:
        decode(encode(Publish("secret/+", b"secret"), V5))
    assert "secret" not in str(found.value)


def test_no_properties_are_shared_and_stay_empty() -> None:
    packet = decode(encode(PubAck(1), V5))[0]
    assert isinstance(packet, PubAck)
    assert packet.properties is NONE
    assert NONE == {}
