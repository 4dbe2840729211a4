"""Waybills: they name a daemon's third to its second, and its porter can show them but not read them.

A porter passes letters also while its daemon is away, and must not know to which third they go. So the third
is in a box sealed to the second, which the porter shows once, and a letter names the box. The key in the box
is the daemon's and the second's alone: the second draws a letter's mark from it, and a third opens nothing
without. Otherwise a porter would find the third with one letter to each on the list: only what it seals for
the daemon's own is opened, and it would see which of its messages was dropped.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import NONCE, seal, unseal
from hushcast_protocol.base.crypto.hashes import DIGEST, LABEL, Domain, digest
from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness, Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules

SERIAL = LABEL  # random bytes of each letter, from which its mark is drawn
_INSIDE = struct.Struct(f">{DIGEST}s32s32s")  # what binds it, the third, the key
WAYBILL = SEALED_BOX + _INSIDE.size  # bytes
_ROUND = struct.Struct(">Q")
_NONCE = bytes(NONCE)  # each key seals once: a second hands down once a round


class WaybillKey(Secret):
    """What a daemon and its second share, to mark letters by."""

    __slots__ = ()


@dataclass(frozen=True)
class Waybill:
    """A waybill as a daemon draws it, and as its second reads it."""

    sealed: bytes
    third: RelayId
    key: WaybillKey

    @classmethod
    def drawn(cls, rules: CoverRules, second: Relay, third: RelayId, randomness: Randomness) -> Waybill:
        """Draw one for a chain."""
        key = WaybillKey.draw(randomness)
        inside = _INSIDE.pack(_bond(rules, second.id), third, key.reveal())
        return cls(seal_box(second.parcel_key, inside, randomness), third, key)

    @classmethod
    def opened(cls, rules: CoverRules, second: RelayId, key: ParcelKey, sealed: bytes) -> Waybill:
        """Read one that a porter shows; raise `AuthenticationError` where it is not for this relay."""
        plain = open_box(key.private_key(), sealed)
        if len(plain) != _INSIDE.size:
            raise AuthenticationError("a waybill is of another size")
        bond, third, shared = _INSIDE.unpack(plain)
        if bond != _bond(rules, second):
            raise AuthenticationError("a waybill is meant for another network or relay")
        return cls(sealed, third, WaybillKey(shared))

    @cached_property
    def name(self) -> bytes:
        """16 bytes by which letters name it."""
        return waybill_name(self.sealed)

    def mark(self, due: int, serial: bytes) -> bytes:
        """Return the 32 bytes that open the letter of a serial in the round in which it is due."""
        return digest(Domain.WAYBILL, _ROUND.pack(due), serial, key=self.key.reveal())

    def sealed_list(self, number: int, listed: bytes) -> bytes:
        """Return a third's list as the second hands it down in a round: no two daemons' are alike."""
        return seal(listed, b"", _NONCE, self._list_key(number))

    def opened_list(self, number: int, sealed: bytes) -> bytes:
        """Return a list handed down in a round; raise `AuthenticationError` where a block holds none."""
        try:
            return unseal(sealed, b"", _NONCE, self._list_key(number))
        except CryptoError:
            raise AuthenticationError("a block holds no list of this round") from None

    def _list_key(self, number: int) -> bytes:
        return digest(Domain.LETTER_LIST, _ROUND.pack(number), key=self.key.reveal())


def waybill_name(sealed: bytes) -> bytes:
    """Return the name of a waybill, as whoever cannot read it knows it."""
    return digest(Domain.WAYBILL, sealed, size=LABEL)


def _bond(rules: CoverRules, second: RelayId) -> bytes:
    return digest(Domain.WAYBILL, rules.network, second)
