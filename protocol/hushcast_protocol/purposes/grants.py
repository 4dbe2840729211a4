"""Grants: the private keys of a purpose for some epochs, sealed to a reader and signed by the issuer.

What a grant is for stands inside the seal: whoever carries it sees who issued it to which key, when, and how
long it is. A grant cannot be taken back; it ends with its epochs, or with the series of its vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.crypto.secrets import AgreementKey, Randomness, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, UsageError
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder, encode
from hushcast_protocol.purposes.key_cover import CoverElement, granted
from hushcast_protocol.purposes.purpose_keys import MAX_EPOCHS, PurposeKey, private_key, root_of
from hushcast_protocol.purposes.purpose_names import MAX_PURPOSE_LEVELS, Purpose, is_purpose
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem
from hushcast_protocol.purposes.signed_vocabulary import PurposeText, SignedVocabulary, check_epochs

_KEY = 32  # bytes
_MOST_KEYS = MAX_PURPOSE_LEVELS + 1  # `whole` of each level, `alone` of the purpose
MAX_GRANTED = MAX_EPOCHS * (_MOST_KEYS * _KEY + 3) + 512  # bytes inside the seal
MAX_GRANT = MAX_GRANTED + SEALED_BOX + 512  # bytes
_WHAT = "grant"

EpochKeys = Annotated[bytes, msgspec.Meta(min_length=2 * _KEY, max_length=_MOST_KEYS * _KEY)]


class GrantedKeys(Wire, frozen=True, tag="granted/1"):
    """What is sealed to the reader: of each epoch the keys `whole` from the purpose up, and `alone`."""

    purpose: PurposeText
    series: Counter
    first: Counter
    """The first epoch."""
    keys: Annotated[tuple[EpochKeys, ...], msgspec.Meta(min_length=1, max_length=MAX_EPOCHS)]


class GrantBody(Wire, frozen=True, tag="grant/1"):
    """What the issuer signs: for whom, when it was made, and the sealed keys."""

    issuer: PublicKey
    number: Counter
    reader: Bytes32
    """An X25519 key."""
    made: Counter
    """Unix seconds."""
    sealed: Annotated[bytes, msgspec.Meta(min_length=SEALED_BOX, max_length=MAX_GRANTED + SEALED_BOX)]


@dataclass(frozen=True)
class Grant:
    """A grant that was checked and opened."""

    number: int
    purpose: Purpose
    series: int
    first: int
    keys: tuple[Mapping[CoverElement, PurposeKey], ...] = field(repr=False)
    """Of each epoch."""

    @property
    def epochs(self) -> range:
        """The epochs that it has keys for."""
        return range(self.first, self.first + len(self.keys))

    def check(self, issued: SignedVocabulary, now: float) -> None:
        """Raise `PurposeError` where it opens nothing of what a vocabulary seals at a moment in Unix seconds.

        It may open what was sealed before.
        """
        if self.series != issued.body.series:
            raise PurposeError(_WHAT, PurposeProblem.OLD_KEYS)
        check_epochs(self.epochs, now, _WHAT)


_decode: Callable[[bytes], Signed] = decoder(Signed, _WHAT, MAX_GRANT)
_decode_body: Callable[[bytes], GrantBody] = decoder(GrantBody, _WHAT, MAX_GRANT)
_decode_keys: Callable[[bytes], GrantedKeys] = decoder(GrantedKeys, _WHAT, MAX_GRANTED)


@dataclass(frozen=True)
class GrantScope:
    """What an issuer grants: a purpose to a reader's X25519 key, for epochs that follow each other."""

    number: int
    reader: bytes
    purpose: Purpose
    epochs: range


def make_grant(
    issuer: Seed, issued: SignedVocabulary, asked: GrantScope, made: int, randomness: Randomness
) -> bytes:
    """Return the grant of a purpose of a vocabulary, `made` at that Unix second.

    Raises `UsageError` for a purpose or epochs that it has not, `AuthenticationError` where the reader's key
    is none.
    """
    issued.vocabulary.check(asked.purpose)
    epochs = asked.epochs
    if not epochs or epochs[0] not in issued.epochs or epochs[-1] not in issued.epochs:
        raise UsageError("the vocabulary has no keys for these epochs: make its next version first")
    root, series = root_of(issuer), issued.body.series
    keys = tuple(
        b"".join(private_key(root, series, epoch, element).reveal() for element in granted(asked.purpose))
        for epoch in epochs
    )
    plain = encode(GrantedKeys(asked.purpose, series, epochs[0], keys))
    sealed = seal_box(asked.reader, plain, randomness)
    body = GrantBody(issuer.public(), asked.number, asked.reader, made, sealed)
    return encode(sign(issuer, SignaturePurpose.GRANT, body))


def read_grant(data: bytes, reader: AgreementKey, issuer: PublicKey) -> Grant:
    """Return a grant of an issuer to a reader; raise `PurposeError` with what is wrong.

    Whether it is of use with a vocabulary and at a moment, `Grant.check` tells.
    """
    try:
        signed = _decode(data)
        body = _decode_body(signed.body)
    except DecodeError:
        raise PurposeError(_WHAT, PurposeProblem.FORM) from None
    if body.issuer != issuer:
        raise PurposeError(_WHAT, PurposeProblem.OTHER_ISSUER)
    try:
        check(issuer, SignaturePurpose.GRANT, signed.body, signed.signature)
    except AuthenticationError:
        raise PurposeError(_WHAT, PurposeProblem.SIGNATURE) from None
    if body.reader != reader.public():
        raise PurposeError(_WHAT, PurposeProblem.OTHER_READER)
    try:
        return _read(body, _decode_keys(open_box(reader.private_key(), body.sealed)))
    except (AuthenticationError, DecodeError):
        raise PurposeError(_WHAT, PurposeProblem.FORM) from None


def _read(body: GrantBody, inside: GrantedKeys) -> Grant:
    if not is_purpose(inside.purpose):
        raise PurposeError(_WHAT, PurposeProblem.FORM)
    purpose = Purpose(inside.purpose)
    elements = granted(purpose)
    if any(len(keys) != len(elements) * _KEY for keys in inside.keys):
        raise PurposeError(_WHAT, PurposeProblem.FORM)
    keys = tuple(
        {
            element: PurposeKey(each[place * _KEY : (place + 1) * _KEY])
            for place, element in enumerate(elements)
        }
        for each in inside.keys
    )
    return Grant(body.number, purpose, inside.series, inside.first, keys)
