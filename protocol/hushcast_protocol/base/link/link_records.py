"""The records of a link: frames sent together share one, sealed by the cipher of its direction."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import TAG, seal, unseal
from hushcast_protocol.base.errors import AuthenticationError, DecodeError

LENGTH = struct.Struct(">I")
"""Before a record the bytes of its sealed content, before a frame those of the frame."""


class RecordCipher:
    """One direction: a key and a counter for its nonces."""

    __slots__ = ("_count", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._count = 0

    def _nonce(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(24, "big")

    def seal(self, plain: bytes) -> tuple[bytes, bytes]:
        """Return the length of the next record, and the record."""
        header = LENGTH.pack(len(plain) + TAG)
        return header, seal(plain, header, self._nonce(), self._key)

    def open(self, header: bytes, sealed: bytes) -> bytes:
        """Return what the next record holds; raise `AuthenticationError`."""
        try:
            return unseal(sealed, header, self._nonce(), self._key)
        except CryptoError:
            raise AuthenticationError("a record on a link was altered") from None


def frames_of(content: bytes) -> Iterator[bytes]:
    """Take a record apart; raise `DecodeError`. No frame is empty: nothing encodes to no bytes."""
    at, end = 0, len(content)
    while at < end:
        start = at + LENGTH.size
        at = start + int.from_bytes(content[at:start], "big")
        if not start < at <= end:
            raise DecodeError("a record ends within a frame" if max(start, at) > end else "an empty frame")
        frame = content[start:at]
        if at == end:
            content = b""  # while the last is looked at, it is held once
        yield frame
