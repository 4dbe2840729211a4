"""What is inside a letter: a message that its third opens, or nothing, which is nothing but random bytes.

A porter makes empty letters for a third that it does not know, and second and third together must not tell
those from a daemon's. So an empty letter is one that opens for nobody, whoever made it, and which letters are
listed as loops follows from a secret of each that only the third and the letter's own maker can know.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from nacl.bindings import crypto_scalarmult_base
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import NONCE, TAG, seal, unseal
from hushcast_protocol.base.crypto.hashes import DIGEST, Domain, digest
from hushcast_protocol.base.crypto.key_agreement import shared_secret
from hushcast_protocol.base.crypto.secrets import AgreementKey, ParcelKey, Randomness
from hushcast_protocol.base.errors import DecodeError, Refusal

CONTENT = 3856  # bytes, as a third is handed them: a one-time key, a message and zeros, a tag
_PUBLIC = 32
_SIZE = struct.Struct(">H")
MAX_LETTER_BODY = CONTENT - _PUBLIC - TAG - _SIZE.size  # bytes of a sealed message; more would show
# Bytes that a letter is listed by: with fewer more of them are listed. One that is lost is listed by chance
# in one round of four millions.
NUMBER = 4
_NUMBER_BEFORE = 8  # the same in an earlier version
# Letters, of which one is listed: of one second's daemons, where 2,000 are on lists of 8, 20 numbers a round,
# and a list takes 1,020. Where all read and publish twelve messages a day, what they send and what is done
# are 34 more.
LOOP_EVERY = 8
_NONCE = bytes(NONCE)  # each key seals once


@dataclass(frozen=True, slots=True)
class LetterReceipt:
    """What a letter is listed by, known to its third and to whoever made it for that third."""

    number: bytes
    """Of a letter that came."""
    is_loop: bool
    """Whether it is listed though there is no message in it."""
    done: bytes
    """Of one whose message was dropped: another, or who sees both would know when that had come."""


@dataclass(frozen=True, slots=True)
class LetterFind:
    """What a third finds in a letter."""

    receipt: LetterReceipt
    body: bytes | None
    """A sealed message to be dropped, or None."""

    @property
    def is_listed(self) -> bool:
        """Whether its number is listed as it came."""
        return self.body is not None or self.receipt.is_loop


def blank_content(randomness: Randomness) -> bytes:
    """Return the content of an empty letter, as who knows no third makes it."""
    return crypto_scalarmult_base(randomness(_PUBLIC)) + randomness(CONTENT - _PUBLIC)


def seal_content(
    third: bytes, bond: bytes, mark: bytes, body: bytes | None, randomness: Randomness
) -> tuple[bytes, LetterReceipt]:
    """Seal a message to a third's parcel key, or make an empty content that it would list alike.

    `bond` is what else it holds for, `mark` what the second hands the third with it. Raises `Refusal` where
    the body is too large or empty.
    """
    own = AgreementKey.draw(randomness)
    public = own.public()
    key = _key(bond, public, shared_secret(own, third), mark)
    if body is None:
        content = public + randomness(CONTENT - _PUBLIC)
    else:
        if not 0 < len(body) <= MAX_LETTER_BODY:
            raise Refusal(f"a message under cover has 1 to {MAX_LETTER_BODY} bytes when it is sealed")
        plain = (_SIZE.pack(len(body)) + body).ljust(_SIZE.size + MAX_LETTER_BODY, b"\0")
        content = public + seal(plain, b"", _NONCE, key)
    return content, _receipt(key, content)


def open_content(key: ParcelKey, bond: bytes, mark: bytes, content: bytes) -> LetterFind:
    """Return what a third finds; without a message where it cannot be opened.

    Raises `DecodeError` where it has another size or was sealed by no daemon, and `AuthenticationError` where
    its one-time key is of low order, so that anybody could open it.
    """
    if len(content) != CONTENT:
        raise DecodeError("a letter's content is of another size")
    public, sealed = content[:_PUBLIC], content[_PUBLIC:]
    own = _key(bond, public, shared_secret(key, public), mark)
    receipt = _receipt(own, content)
    try:
        plain = unseal(sealed, b"", _NONCE, own)
    except CryptoError:
        return LetterFind(receipt, None)
    (size,) = _SIZE.unpack_from(plain)
    body, filler = plain[_SIZE.size :][:size], plain[_SIZE.size + size :]
    if not 0 < size <= MAX_LETTER_BODY or any(filler):
        raise DecodeError("a letter's content is not well formed")
    return LetterFind(receipt, body)


def kept_number(kept: bytes) -> bytes:
    """Return a letter's number from a record, also of an earlier version. Raises `DecodeError`."""
    if len(kept) not in (NUMBER, _NUMBER_BEFORE):
        raise DecodeError("a letter's number is of another size")
    return kept[:NUMBER]


def _key(bond: bytes, public: bytes, shared: bytes, mark: bytes) -> bytes:
    return digest(Domain.LETTER_KEY, bond + public, shared, key=mark)


def _receipt(key: bytes, content: bytes) -> LetterReceipt:
    # Of all bytes: who changes some on the way brings no loop back.
    drawn = digest(Domain.LETTER_NUMBER, content, key=key, size=DIGEST)
    # Both begin as they did when they were longer, so who lists or keeps those is understood.
    number, loop, done = drawn[:NUMBER], drawn[_NUMBER_BEFORE], drawn[_NUMBER_BEFORE + 1 :][:NUMBER]
    return LetterReceipt(number, loop % LOOP_EVERY == 0, done)
