"""The vocabulary as its issuer signs it: the purposes, and the public halves of their keys for some epochs.

It is all that a writer needs, and no secret. Each version replaces the one before; a new `series` has other
keys for all purposes, so that whoever had the old ones reads nothing that is sealed by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, UsageError
from hushcast_protocol.base.wire import Counter, PublicKey, Wire, decoder, encode
from hushcast_protocol.purposes.key_cover import CoverElement
from hushcast_protocol.purposes.purpose_keys import MAX_EPOCHS, epoch_of, private_key, root_of
from hushcast_protocol.purposes.purpose_names import MAX_PURPOSE_LEVEL, MAX_PURPOSE_LEVELS
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem
from hushcast_protocol.purposes.vocabulary import MAX_PURPOSES, Vocabulary

_KEY = 32  # bytes
_OF_PURPOSE = 2 * _KEY  # bytes of an epoch for each: whole, alone
_PATH = MAX_PURPOSE_LEVELS * (MAX_PURPOSE_LEVEL + 1) - 1  # characters
MAX_ISSUED = 1_048_576  # bytes; the most purposes with the longest names and all epochs take 990,000
_WHAT = "vocabulary"

PurposeText = Annotated[str, msgspec.Meta(min_length=1, max_length=_PATH)]
EpochKeys = Annotated[bytes, msgspec.Meta(min_length=_OF_PURPOSE, max_length=MAX_PURPOSES * _OF_PURPOSE)]


class VocabularyBody(Wire, frozen=True, tag="vocabulary/1"):
    """What an issuer signs: purposes in order, and of each epoch the public `whole` and `alone` of each."""

    issuer: PublicKey
    version: Counter
    series: Counter
    made: Counter
    """Unix seconds."""
    purposes: Annotated[tuple[PurposeText, ...], msgspec.Meta(min_length=1, max_length=MAX_PURPOSES)]
    first: Counter
    """The first epoch."""
    keys: Annotated[tuple[EpochKeys, ...], msgspec.Meta(min_length=1, max_length=MAX_EPOCHS)]


@dataclass(frozen=True)
class SignedVocabulary:
    """A vocabulary whose signature and form were checked."""

    signed: Signed
    body: VocabularyBody
    vocabulary: Vocabulary

    @property
    def epochs(self) -> range:
        """The epochs that it has keys for."""
        return range(self.body.first, self.body.first + len(self.body.keys))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {purpose: number for number, purpose in enumerate(self.body.purposes)}

    def public(self, element: CoverElement, epoch: int) -> bytes:
        """Return the public key of an element; `KeyError` for a purpose or an epoch that it has not."""
        if epoch not in self.epochs:
            raise KeyError("an epoch that the vocabulary has no keys for")
        at = self._places[element.purpose] * _OF_PURPOSE + (0 if element.whole else _KEY)
        return self.body.keys[epoch - self.body.first][at : at + _KEY]

    def check_time(self, now: float) -> None:
        """Raise `PurposeError` where it has no keys for this moment in Unix seconds."""
        check_epochs(self.epochs, now, _WHAT)

    def check_newer(self, held: SignedVocabulary) -> None:
        """Raise `PurposeError` where the one held of its issuer is newer, or is another of this version."""
        if self.body.version < held.body.version:
            raise PurposeError(_WHAT, PurposeProblem.OLDER)
        if self.body.version == held.body.version and self.signed.body != held.signed.body:
            raise PurposeError(_WHAT, PurposeProblem.FORKED)


_decode: Callable[[bytes], Signed] = decoder(Signed, _WHAT, MAX_ISSUED)
_decode_body: Callable[[bytes], VocabularyBody] = decoder(VocabularyBody, _WHAT, MAX_ISSUED)


def issue(
    issuer: Seed, vocabulary: Vocabulary, epochs: range, version: int, series: int, made: int
) -> SignedVocabulary:
    """Sign a vocabulary with the public keys of some epochs that follow each other, 1 to `MAX_EPOCHS`."""
    if not 1 <= len(epochs) <= MAX_EPOCHS or epochs.step != 1:
        raise ValueError("a vocabulary has 1 to 26 epochs that follow each other")
    root, purposes = root_of(issuer), tuple(vocabulary)
    keys = tuple(
        b"".join(
            private_key(root, series, epoch, CoverElement(purpose, whole)).public()
            for purpose in purposes
            for whole in (True, False)
        )
        for epoch in epochs
    )
    body = VocabularyBody(issuer.public(), version, series, made, purposes, epochs[0], keys)
    return SignedVocabulary(sign(issuer, SignaturePurpose.VOCABULARY, body), body, vocabulary)


def write_issued(issued: SignedVocabulary) -> bytes:
    """Return a signed vocabulary as it is handed out."""
    return encode(issued.signed)


def read_issued(data: bytes, issuer: PublicKey | None = None) -> SignedVocabulary:
    """Return a signed vocabulary; raise `PurposeError` with what is wrong with it.

    Without `issuer`, whoever signed it is taken at their word: for people who look at it.
    """
    try:
        signed = _decode(data)
        body = _decode_body(signed.body)
        vocabulary = Vocabulary(body.purposes)
    except (DecodeError, UsageError):
        raise PurposeError(_WHAT, PurposeProblem.FORM) from None
    if tuple(vocabulary) != body.purposes or any(
        len(keys) != len(body.purposes) * _OF_PURPOSE for keys in body.keys
    ):
        raise PurposeError(_WHAT, PurposeProblem.FORM)
    if issuer is not None and body.issuer != issuer:
        raise PurposeError(_WHAT, PurposeProblem.OTHER_ISSUER)
    try:
        check(body.issuer, SignaturePurpose.VOCABULARY, signed.body, signed.signature)
    except AuthenticationError:
        raise PurposeError(_WHAT, PurposeProblem.SIGNATURE) from None
    return SignedVocabulary(signed, body, vocabulary)


def check_epochs(epochs: range, now: float, what: str) -> None:
    """Raise `PurposeError` where what is for these epochs is not for a moment in Unix seconds."""
    epoch = epoch_of(now)
    if epoch < epochs.start:
        raise PurposeError(what, PurposeProblem.NOT_YET)
    if epoch >= epochs.stop:
        raise PurposeError(what, PurposeProblem.EXPIRED)
