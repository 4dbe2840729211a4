"""The data types of MQTT as bytes (OASIS MQTT 5.0, section 1.5): read from a packet, written into one."""

from __future__ import annotations

from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topics import topic_filters
from hushcast_protocol.mqtt.topics.topic_filters import MAX_TEXT

MAX_VARIABLE = 268_435_455  # the largest variable byte integer, of four bytes


def malformed(what: str) -> PacketError:
    """Return the error of bytes that are no packet."""
    return PacketError(Reason.MALFORMED_PACKET, what)


def cut_short() -> PacketError:
    """Return the error of a field that its packet or its block cuts short."""
    return malformed("a field is longer than its packet")


class Reader:
    """Reads fields from a part of a packet; whatever does not fit raises `PacketError`."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data = data
        self._at = at
        self._end = end

    @property
    def left(self) -> int:
        """The bytes that are left."""
        return self._end - self._at

    def _take(self, size: int) -> int:
        at = self._at
        if at + size > self._end:
            raise cut_short()
        self._at = at + size
        return at

    def byte(self) -> int:
        """Read a byte."""
        at = self._at
        if at >= self._end:
            raise cut_short()
        self._at = at + 1
        return self._data[at]

    def two(self) -> int:
        """Read a two byte integer."""
        at = self._at
        if at + 2 > self._end:
            raise cut_short()
        self._at = at + 2
        return self._data[at] << 8 | self._data[at + 1]

    def four(self) -> int:
        """Read a four byte integer."""
        at = self._take(4)
        return int.from_bytes(self._data[at : at + 4], "big")

    def variable(self) -> int:
        """Read a variable byte integer, in the fewest bytes as the standard asks for."""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise malformed("a variable byte integer has bytes too many")
                return value
        raise malformed("a variable byte integer has more than four bytes")

    def packet_id(self) -> int:
        """Read a packet identifier, which is never 0."""
        found = self.two()
        if not found:
            raise PacketError(Reason.PROTOCOL_ERROR, "a packet identifier is 0")
        return found

    def binary(self) -> bytes:
        """Read binary data."""
        start = self._at + 2
        if start > self._end:
            raise cut_short()
        self._at = end = start + (self._data[start - 2] << 8 | self._data[start - 1])
        if end > self._end:
            raise cut_short()
        return self._data[start:end]

    def text(self) -> str:
        """Read a UTF-8 string; U+0000 and surrogates are none."""
        start = self._at + 2
        if start > self._end:
            raise cut_short()
        self._at = end = start + (self._data[start - 2] << 8 | self._data[start - 1])
        if end > self._end:
            raise cut_short()
        return text_of(self._data[start:end])

    def name(self) -> str:
        """Read a string that names something: a topic, a client, a user. It has no control characters."""
        found = self.text()
        if topic_filters.has_control(found):
            raise malformed("a name holds a control character")
        return found

    def part(self, size: int) -> Reader:
        """Read a part of this size, as a reader of its own."""
        at = self._take(size)
        return Reader(self._data, at, at + size)

    def rest(self) -> bytes:
        """Read all that is left."""
        found = self._data[self._at : self._end]
        self._at = self._end
        return found

    def finish(self) -> None:
        """Refuse bytes that are left over."""
        if self._at != self._end:
            raise malformed("bytes are left over")


def text_of(data: bytes) -> str:
    """Return the text of a UTF-8 string; U+0000 and surrogates are none."""
    try:
        found = data.decode()
    except UnicodeDecodeError:
        raise malformed("a text is not UTF-8") from None
    if "\x00" in found:
        raise malformed("a text holds U+0000")
    return found


def two(value: int) -> bytes:
    """Write a two byte integer."""
    return value.to_bytes(2, "big")


def variable(value: int) -> bytes:
    """Write a variable byte integer; `ValueError` above `MAX_VARIABLE`."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value > MAX_VARIABLE:
        raise ValueError("a variable byte integer is too large")
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def binary(value: bytes) -> bytes:
    """Write binary data; `ValueError` above `MAX_TEXT` bytes."""
    if len(value) > MAX_TEXT:
        raise ValueError(f"a field has more than {MAX_TEXT} bytes")
    return two(len(value)) + value


def text(value: str) -> bytes:
    """Write a UTF-8 string; `ValueError` above `MAX_TEXT` bytes or where it has surrogates."""
    return binary(value.encode())
