"""Bytes of a connection to MQTT packets, without I/O; `encode` and `encode_publish` are the way back.

A stream may be cut anywhere. What breaks the standard raises `PacketError` with the reason to give; nothing
else comes out of any bytes.
"""

from __future__ import annotations

from sys import maxsize

from hushcast_protocol.base.errors import unraised
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.wire.decoding import DECODE, publish
from hushcast_protocol.mqtt.wire.encoding import encode, encode_puback, encode_publish
from hushcast_protocol.mqtt.wire.fields import Reader, malformed
from hushcast_protocol.mqtt.wire.packets import NONE, V5, Connect, Packet, PingReq, PubAck
from hushcast_protocol.mqtt.wire.properties import PacketType

__all__ = ["Decoder", "encode", "encode_puback", "encode_publish"]

UNIT = 64  # bytes of a packet, payloads apart, that take about as long to take apart as a short packet

_PING = PingReq()
_OF_CLIENT = frozenset({PacketType.CONNECT, PacketType.SUBSCRIBE, PacketType.UNSUBSCRIBE, PacketType.PINGREQ})
_OF_SERVER = frozenset({PacketType.CONNACK, PacketType.SUBACK, PacketType.UNSUBACK, PacketType.PINGRESP})
_FLAGS: dict[int, int] = {
    PacketType.PUBREL: 2,
    PacketType.SUBSCRIBE: 2,
    PacketType.UNSUBSCRIBE: 2,
}  # all others: 0
_FLAGS_LAST = frozenset({0, PacketType.CONNACK, PacketType.PUBLISH, PacketType.PINGRESP, PacketType.AUTH})
_BOTH = frozenset({*range(0x30, 0x40), 0x40, 0x50, 0x62, 0x70})
_SOUND = (
    _BOTH | {0x82, 0xA2},
    _BOTH | {0x90, 0xB0},
)  # first bytes that need no look, once a version is known


class Decoder:
    """Decodes what one peer sends, from any slices of its stream.

    `version` is learnt from CONNECT, or set by a client (5 until then). `error` is what broke the standard:
    packets that were whole before it are given out first, so look at `error` after each `feed`. `has_more` is
    whether `feed` left bytes that it has not looked at yet, for they would have been too much at once.
    """

    def __init__(self, max_packet: int, of_server: bool = False, max_connect: int | None = None) -> None:
        """Take packets of at most `max_packet` bytes, header included; CONNECT of at most `max_connect`.

        `of_server`: a server sends, and not a client.
        """
        self.version = V5 if of_server else 0
        self.error: PacketError | None = None
        self.has_more = False
        self._of_server = of_server
        self._max_packet = max_packet
        self._max_connect = max_packet if max_connect is None else min(max_connect, max_packet)
        self._kept = bytearray()
        self._needed = 2

    def feed(self, data: bytes | bytearray | memoryview, most: int = maxsize) -> list[Packet]:
        """Return the packets that are whole with these bytes, in order.

        `most` is how much of them: a packet is one, and so are `UNIT` bytes of it that are no payload. Where
        there is more, feed nothing to get it.

        Raises `PacketError` if the very first of them is wrong, or if one was before. If a later one is,
        those before it are returned and `error` is set.
        """
        if self.error is not None:
            raise unraised(self.error)
        if self._kept:
            if len(self._kept) + len(data) < self._needed:
                self._kept += data
                return []
            data = b"".join((self._kept, data))
            self._kept = bytearray()
        elif type(data) is not bytes:
            data = bytes(data)  # payloads are slices of it, and never change
        found: list[Packet] = []
        self.has_more = False
        try:
            done = self._decode(data, found, most)
        except PacketError as error:
            self.error = unraised(error)  # without the frames that have what was refused
            if not found:
                raise
        else:
            if done < len(data):
                self._kept += data[done:] if done else data
        return found

    def _decode(self, data: bytes, found: list[Packet], most: int) -> int:
        """Add whole packets to `found`; return where the first that is not there begins."""
        at, size, of_server, version = 0, len(data), self._of_server, self.version
        sound, largest = _SOUND[of_server], self._max_packet if version else self._max_connect
        while at + 1 < size and most > 0:
            first, length, body = data[at], data[at + 1], at + 2
            if first not in sound or not version:
                self._check(first, length)
            if length > 0x7F and body < size and 0 < data[body] < 0x80:  # two bytes, as most have
                length, body = length & 0x7F | data[body] << 7, body + 1
            elif length > 0x7F:
                length, body = _length(data, at + 1, size)
                if not body:
                    self._needed = size - at + 1
                    return at
            end = body + length
            if end - at > largest:
                raise PacketError(Reason.PACKET_TOO_LARGE, "a packet is larger than is taken")
            if end > size:
                self._needed = end - at
                return at
            most -= 1
            if first & 0xF0 == 0x30:
                packet = publish(data, body, end, first & 0x0F, version, of_server)
                most -= (length - len(packet.payload)) // UNIT
                found.append(packet)
            elif first == 0x40 and length == 2 and (data[body] or data[body + 1]):  # a PUBACK, as most are
                found.append(PubAck(data[body] << 8 | data[body + 1], 0, NONE))
            elif first == 0xC0 and not length:  # many of which fit into one read
                found.append(_PING)
            else:
                most -= length // UNIT
                other = DECODE[first >> 4](Reader(data, body, end), version, of_server)
                if isinstance(other, Connect):
                    self.version = version = other.version
                    largest = self._max_packet
                found.append(other)
            at = end
        self.has_more = at + 1 < size
        self._needed = 2
        return at

    def _check(self, first: int, length: int) -> None:
        """Refuse from the fixed header: a type that nobody sends here and now, or flags that are reserved.

        Where two things are wrong, mosquitto's test sequences decide which is told.
        """
        kind, flags = first >> 4, first & 0x0F  # of `PacketType`, or 0
        if not self._of_server and (kind == PacketType.CONNECT) != (self.version == 0):
            raise PacketError(Reason.PROTOCOL_ERROR, "CONNECT comes first, and once")
        if flags != _FLAGS.get(kind, 0) and kind not in _FLAGS_LAST:
            raise malformed("reserved flags are set")
        if length and kind in (PacketType.PINGREQ, PacketType.PINGRESP):
            raise PacketError(Reason.MALFORMED_PACKET, "a ping with a body", silent=True)
        if kind == 0 or kind in (_OF_CLIENT if self._of_server else _OF_SERVER):
            raise PacketError(Reason.PROTOCOL_ERROR, "a packet that the other side does not send")
        if flags and kind == PacketType.AUTH:
            raise PacketError(Reason.PROTOCOL_ERROR, "reserved flags are set")


def _length(data: bytes, at: int, size: int) -> tuple[int, int]:
    """Return a remaining length and where its packet's body begins, 0 if the length goes on beyond `size`."""
    value = 0
    for count in range(4):
        if at + count >= size:
            return 0, 0
        byte = data[at + count]
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if not byte:
                raise malformed("a remaining length has bytes too many")
            return value, at + count + 1
    raise malformed("a remaining length has more than four bytes")
