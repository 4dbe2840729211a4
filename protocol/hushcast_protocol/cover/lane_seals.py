"""A lane's blocks: a host seals one each round for the owner of a box, and the second seals it once more.

So host and porter, who collude, find nothing in common in what one gave and the other has. The tags take
their room inside: a block has `BLOCK` bytes at the porter and at the daemon. Whoever has not both keys tells
none from random bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import NONCE, TAG, seal, unseal
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.cover.receipt_list import BLOCK

HOST_BLOCK = BLOCK - TAG  # bytes, as a host gives it to the second
LANE_ROOM = HOST_BLOCK - TAG  # bytes, as a host fills them
_WHEN = struct.Struct(">BQ")
_HOST, _SECOND = 0, 1
_NONCE = bytes(NONCE)  # each key seals once: a host and a second begin with the next round after a start


class LaneKey(Secret):
    """What the owner of a box shares with its host, or with the second of its lane."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class LaneKeys:
    """Both keys of one lane, as its owner alone has them."""

    host: LaneKey
    second: LaneKey

    @classmethod
    def drawn(cls, randomness: Randomness) -> LaneKeys:
        """Draw the keys of a lane."""
        return cls(LaneKey.draw(randomness), LaneKey.draw(randomness))

    def opened(self, number: int, block: bytes) -> bytes:
        """Return what a host filled a block of a round with: `LANE_ROOM` bytes.

        Raises `AuthenticationError` where it is random, of another round or lane, or was changed.
        """
        try:
            inside = unseal(block, b"", _NONCE, _key(self.second, _SECOND, number))
            return unseal(inside, b"", _NONCE, _key(self.host, _HOST, number))
        except CryptoError:
            raise AuthenticationError("a block holds nothing of this lane and round") from None


def host_block(key: LaneKey, number: int, filled: bytes) -> bytes:
    """Return the block that a host gives to the second in a round, of `LANE_ROOM` bytes."""
    assert len(filled) == LANE_ROOM
    return seal(filled, b"", _NONCE, _key(key, _HOST, number))


def second_block(key: LaneKey, number: int, given: bytes) -> bytes:
    """Return the block that a second hands to the porter for a host's of `HOST_BLOCK` bytes."""
    assert len(given) == HOST_BLOCK
    return seal(given, b"", _NONCE, _key(key, _SECOND, number))


def _key(key: LaneKey, stage: int, number: int) -> bytes:
    return digest(Domain.LANE, _WHEN.pack(stage, number), key=key.reveal())
