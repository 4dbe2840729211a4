"""Seals filters and the words of messages under an epoch of a community; their sizes tell little.

The payload is sealed under its topic's key, and no business of brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_ABYTES as TAG,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt as aead_open,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal,
)
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Bytes16, PublicKey, Wire, decoder, encode
from hushcast_protocol.brokers.clear_words import ShownFilter
from hushcast_protocol.brokers.community.community_epochs import MemberEpoch
from hushcast_protocol.content.messages import NONCE
from hushcast_protocol.content.tokens import TOKEN_COUNTS

FILTER_ROOM = 174  # bytes for a filter: the largest takes 164, and all that are sealed have one size

_LENGTH = 2  # bytes that say how many of the room are taken
_BOX = NONCE + _LENGTH + FILTER_ROOM + TAG
_FILTER = b"hushcast sealed filter 1\x00"


class SealedFilter(Wire, frozen=True, tag="sealed"):
    """A filter on its way, for members of a community alone."""

    label: Bytes16
    box: Annotated[bytes, msgspec.Meta(min_length=_BOX, max_length=_BOX)]

    @property
    def name(self) -> bytes:
        """16 bytes that name it; equal where the same child sealed the same filter under the same epoch."""
        return digest(Domain.SEALED, self.label, self.box, size=LABEL)


_decode_filter: Callable[[bytes], ShownFilter] = decoder(ShownFilter, "filter", FILTER_ROOM)


def seal_filter(epoch: MemberEpoch, sealer: PublicKey, shown: ShownFilter) -> SealedFilter:
    """Seal a filter; `sealer` is who shows it, by the key that its parent knows.

    The nonce is a hash of both: sealed again it is the same, so that a table needs not be said again after a
    restart, and two children's equal filters are not equal to who is no member.
    """
    plain = encode(shown)
    assert len(plain) <= FILTER_ROOM, "a filter is larger than any can be"
    nonce = digest(Domain.COMMUNITY, b"nonce", sealer, plain, key=epoch.filters, size=NONCE)
    padded = len(plain).to_bytes(_LENGTH, "big") + plain.ljust(FILTER_ROOM, b"\0")
    return SealedFilter(epoch.label, nonce + aead_seal(padded, _FILTER, nonce, epoch.filters))


def open_filter(epoch: MemberEpoch, sealed: SealedFilter) -> ShownFilter:
    """Return what was sealed under an epoch; raise `AuthenticationError`, or `DecodeError` for no filter."""
    padded = _opened(sealed.box, _FILTER, epoch.filters, "filter")
    return _decode_filter(padded[_LENGTH : _LENGTH + int.from_bytes(padded[:_LENGTH], "big")])


def seal_words(
    epoch: MemberEpoch, message: bytes, words: Sequence[bytes], randomness: Randomness
) -> tuple[bytes, ...]:
    """Return the tokens of a message with this id: the label, and then its words (16 bytes each), sealed."""
    plain = bytes([len(words)]) + b"".join(words)
    count = next(count for count in TOKEN_COUNTS if _room(count) >= len(plain))
    nonce = randomness(NONCE)
    box = nonce + aead_seal(plain.ljust(_room(count), b"\0"), message, nonce, epoch.words)
    return (epoch.label, *_pieces(box))


def open_words(epoch: MemberEpoch, message: bytes, tokens: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the words of a message with this id and these tokens.

    Raises `AuthenticationError` where they are not of this message and epoch, else `DecodeError`.
    """
    if len(tokens) not in TOKEN_COUNTS or tokens[0] != epoch.label:
        raise DecodeError("a message's words are not sealed as a community's are")
    plain = _opened(b"".join(tokens[1:]), message, epoch.words, "message's words")
    count = plain[0]
    if not 0 < count <= (len(plain) - 1) // LABEL:
        raise DecodeError("a message has no words, or more than there is room for")
    return _pieces(plain[1 : 1 + count * LABEL])


def _room(count: int) -> int:
    """Return the bytes for words, and for how many they are, in so many tokens."""
    return (count - 1) * LABEL - NONCE - TAG


def _pieces(data: bytes) -> tuple[bytes, ...]:
    return tuple(data[at : at + LABEL] for at in range(0, len(data), LABEL))


def _opened(box: bytes, associated: bytes, key: bytes, what: str) -> bytes:
    try:
        return aead_open(box[NONCE:], associated, box[:NONCE], key)
    except (CryptoError, ValueError):
        raise AuthenticationError(f"a {what} is not sealed under this epoch") from None
