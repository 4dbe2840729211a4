"""Pieces: what a host has for a box, cut so that each has room in a block; they may come in any order."""

from __future__ import annotations

import struct

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.cover.lane_box import MAX_LANE_ITEM

_HEAD = struct.Struct(f">{LABEL}sBB")  # which body, which piece of it, the last one
_PIECE = MAX_LANE_ITEM - _HEAD.size  # bytes of a body in one item
MAX_PIECES = 128  # of one body: 517 KB, twice the largest message
# Bodies of one lane whose pieces are not all there; 8 MB. Blocks have one in several of them at a time, and a
# host says all again.
MAX_BODIES_IN_PIECES = 16


def lane_pieces(body: bytes) -> list[bytes]:
    """Return a body as items of a lane; each names it by its hash."""
    assert 0 < len(body) <= MAX_PIECES * _PIECE
    cut = [body[begin : begin + _PIECE] for begin in range(0, len(body), _PIECE)]
    name, last = _name(body), len(cut) - 1
    return [_HEAD.pack(name, index, last) + piece for index, piece in enumerate(cut)]


def piece_sizes(length: int) -> tuple[int, ...]:
    """Return the bytes of each item of a body of a length."""
    return tuple(_HEAD.size + min(_PIECE, length - begin) for begin in range(0, length, _PIECE))


class LanePieces:
    """The bodies of one lane, as its owner joins them."""

    def __init__(self) -> None:
        self._coming: dict[tuple[bytes, int], dict[int, bytes]] = {}  # by name and last piece

    def take(self, item: bytes) -> bytes | None:
        """Take an item; return the body that is whole with it, if one is. It may have been there before.

        Raises a `PeerError` where no host cuts so: `AuthenticationError` if the body is not what it says.
        """
        if len(item) <= _HEAD.size:
            raise DecodeError("an item of a lane is no piece")
        name, index, last = _HEAD.unpack_from(item)
        if index > last or last >= MAX_PIECES:
            raise DecodeError("a piece is behind the last one")
        pieces = self._coming.setdefault((name, last), {})
        pieces[index] = item[_HEAD.size :]
        if len(pieces) <= last:
            if len(self._coming) > MAX_BODIES_IN_PIECES:
                del self._coming[next(iter(self._coming))]
            return None
        del self._coming[name, last]
        body = b"".join(pieces[index] for index in range(last + 1))
        if _name(body) != name:
            raise AuthenticationError("a body was cut into other pieces")
        return body


def _name(body: bytes) -> bytes:
    return digest(Domain.LANE, b"piece", body, size=LABEL)
