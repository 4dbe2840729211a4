"""Targets: MQTT as strangers send it, of both versions and from both sides."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import mqtt_examples as examples
from fuzzing import Target
from mutating import mutate_bytes

from hushcast_protocol.mqtt.reason_codes import PacketError
from hushcast_protocol.mqtt.topics import topic_filters
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.fields import variable
from hushcast_protocol.mqtt.wire.packets import V5, V311, Packet, Publish, Subscribe

LARGEST = 4096  # bytes of a packet: small, so that inputs meet the bound
_SIDES = list(product((V311, V5), (False, True)))  # the first byte of an input chooses one


def _packets(data: bytes) -> object:
    """A stream: its packets are the same however it is cut, and the same again when written and read."""
    version, of_server = _SIDES[data[0] % 4] if data else (V5, False)
    whole, data = _read(version, of_server, [data[1:]]), data[1:]
    size = len(data) % 7 + 1
    pieces = _read(version, of_server, [data[at : at + size] for at in range(0, len(data), size)])
    assert whole == pieces
    packets, reason, version = whole
    assert len(packets) <= len(data) // 2
    for packet in packets:
        sent = encode(packet, version)
        assert len(sent) <= LARGEST + 16  # what may be left out may also be written out, and the other way
        assert encode(_one(sent, version, of_server), version) == sent
        if isinstance(packet, Publish) and packet.topic:
            assert topic_filters.is_name(packet.topic)
        if isinstance(packet, Subscribe):
            assert all(topic_filters.is_filter(one.filter) for one in packet.subscriptions)
    return reason


def _read(version: int, of_server: bool, pieces: list[bytes]) -> tuple[list[Packet], int | None, int]:
    """Return the packets, the reason of the end, and the version in the end."""
    decoder = Decoder(LARGEST, of_server, LARGEST // 2)
    decoder.version = 0 if pieces and pieces[0][:1] == b"\x10" and not of_server else version
    found: list[Packet] = []
    for piece in pieces:
        try:
            found += decoder.feed(piece)
        except PacketError:
            assert decoder.error is not None
        assert len(decoder._kept) < LARGEST + 5
        if decoder.error is not None:
            return found, decoder.error.reason, decoder.version
    return found, None, decoder.version


def _one(sent: bytes, version: int, of_server: bool) -> Packet:
    decoder = Decoder(2 * LARGEST, of_server)
    decoder.version = 0 if sent[:1] == b"\x10" and not of_server else version
    (packet,) = decoder.feed(sent)
    return packet


def _streams() -> Iterator[bytes]:
    for number, (version, of_server) in enumerate(_SIDES):
        side = bytes((number,))
        for packet in examples.all_packets(version, of_server):
            yield side + encode(packet, version)
        yield side + examples.stream(version, of_server)


def _mutate(random: Random, corpus: list[bytes]) -> bytes:
    """Damage packets inside their frames, so that what lies behind the length is reached, or the bytes."""
    if random.random() < 0.3:
        return mutate_bytes(random, corpus)
    chosen = random.choice(corpus)
    found = bytearray(chosen[:1])
    frames = _frames(chosen[1:])
    for number, (first, body) in enumerate(frames):
        if number == len(frames) - 1 or random.random() < 0.3:
            body = mutate_bytes(random, [body] * 9 + [random.choice(frames)[1]])[: 2 * LARGEST]
            if random.random() < 0.1:
                first ^= 1 << random.randrange(8)
        found += bytes((first,)) + variable(len(body)) + body
    return bytes(found)


def _frames(stream: bytes) -> list[tuple[int, bytes]]:
    """Cut a stream at its packets, as far as it has any."""
    found = []
    while len(stream) > 1:
        length = at = 0
        while at < 4 and at + 1 < len(stream):
            length |= (stream[at + 1] & 0x7F) << 7 * at
            at += 1
            if stream[at] < 0x80:
                break
        found.append((stream[0], stream[at + 1 : at + 1 + length]))
        stream = stream[at + 1 + length :]
    return found


def _topics(data: bytes) -> object:
    """A filter and a name, or two filters, whatever they are: no answer takes long."""
    one, _, other = data.decode(errors="replace").partition("\n")
    if not topic_filters.is_filter(one):
        return None
    share = topic_filters.split_share(one)
    wanted = share[1] if share else one
    if topic_filters.is_name(other):
        return topic_filters.matches(wanted, other)
    if topic_filters.is_filter(other) and topic_filters.split_share(other) is None:
        assert topic_filters.intersects(wanted, other) == topic_filters.intersects(other, wanted)
    return None


TARGETS = [
    Target("mqtt", _packets, _streams, (), _mutate, 30),
    Target(
        "mqtt-topics",
        _topics,
        lambda: [b"a/+/#\na/b/c", b"$share/group/a/#\na", b"#\n$SYS/a", b"+/+\n/a", b"a/#\n+/b/#"],
        weight=5,
    ),
]
