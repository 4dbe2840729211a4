"""Messages sealed for purposes: a content key under each element of a cover, and everything else inside.

    mark, epoch, one-time public key, nonce, number of slots, slots, sealed content

A slot has 40 bytes: 8 by which a reader with the element's key finds it, and the content key, both masked by
a hash of the shared secret and the message's nonce. To whoever has not that key a slot looks like random
bytes, and slots are filled up with such: neither which elements there are shows, nor quite how many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_ABYTES as TAG,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt as aead_open,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES as _NPUBBYTES,
)
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.key_agreement import shared_secret
from hushcast_protocol.base.crypto.secrets import AgreementKey, Randomness
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.purposes.grants import Grant
from hushcast_protocol.purposes.key_cover import CoverElement
from hushcast_protocol.purposes.purpose_keys import PurposeKey, epoch_of
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.purpose_problems import PurposeError, PurposeProblem
from hushcast_protocol.purposes.signed_vocabulary import SignedVocabulary
from hushcast_protocol.purposes.vocabulary import MAX_PURPOSES

MARK = b"\x89PURP\r\n\x01"
SLOT_COUNTS = (4, 8, 16, 32, 64, 128, 256, MAX_PURPOSES)  # their number tells one of eight
MAX_SEALED = 262_144  # bytes: the largest payload of the network
MAX_WRITERS = 256  # one-time keys whose shared secrets a reader remembers; a topic has a few a day

_NONCE: int = _NPUBBYTES  # bytes
_EPOCH, _KEY, _TAG, _COUNT = 8, 32, 8, 2  # bytes
_SLOT = _TAG + _KEY
_HEADER = len(MARK) + _EPOCH + _KEY + _NONCE + _COUNT
_DAY = 24 * 3600  # seconds
_WHAT = "message"


def sealed_size(elements: int, size: int) -> int:
    """Return how many bytes content of a size takes when it is sealed under so many elements."""
    return _HEADER + _slots(elements) * _SLOT + size + TAG


def is_sealed(data: bytes) -> bool:
    """Tell whether a payload is sealed for purposes, or says so."""
    return data.startswith(MARK)


class Sealer:
    """A writer: seals by the public keys of one vocabulary.

    Its one-time key lasts for a day (UTC): the next message forgets it, and with it all that could open what
    was sealed. Until then it ties the day's messages together for whoever can open the topic's seal, and
    whoever takes it opens those of that day; with `each_message` neither is so, for it is forgotten with its
    message, and each element costs an agreement.
    """

    def __init__(self, issued: SignedVocabulary, randomness: Randomness, each_message: bool = False) -> None:
        self._issued = issued
        self._randomness = randomness
        self._each_message = each_message
        self._day = -1
        self._own: AgreementKey | None = None
        self._shared: dict[bytes, bytes] = {}  # by an element's public key: two for each purpose at most

    def seal(self, elements: Iterable[CoverElement], content: bytes, now: float) -> bytes:
        """Seal content so that it opens with the keys of these elements, and no other.

        `elements` are distinct and of the vocabulary, as a cover is; none is a message that nobody opens,
        which looks like any other. `now` is Unix seconds. Raises `PurposeError` where the vocabulary has no
        keys for that moment, `AuthenticationError` where one of its keys is none.
        """
        self._issued.check_time(now)
        own = self._key_of(int(now // _DAY))
        epoch = epoch_of(now)
        key, nonce = self._randomness(_KEY), self._randomness(_NONCE)
        slots = [
            _masked(self._secret(own, self._issued.public(element, epoch)), nonce, bytes(_TAG) + key)
            for element in elements
        ]
        count = _slots(len(slots))
        slots += [self._randomness(_SLOT) for _ in range(count - len(slots))]
        header = b"".join(
            (
                MARK,
                epoch.to_bytes(_EPOCH, "big"),
                own.public(),
                nonce,
                count.to_bytes(_COUNT, "big"),
                *sorted(slots),
            )
        )
        sealed = header + aead_seal(content, header, nonce, key)
        if self._each_message:
            self._forget()
        return sealed

    def _key_of(self, day: int) -> AgreementKey:
        if day != self._day:
            self._forget()
            self._day = day
        if self._own is None:
            self._own = AgreementKey.draw(self._randomness)
        return self._own

    def _forget(self) -> None:
        self._own = None
        self._shared.clear()

    def _secret(self, own: AgreementKey, public: bytes) -> bytes:
        found = self._shared.get(public)
        if found is None:
            found = self._shared[public] = _secret(shared_secret(own, public), own.public(), public)
        return found


@dataclass(frozen=True)
class OpenedContent:
    """What was inside, and for which purposes: those granted whose keys open it."""

    content: bytes = field(repr=False)
    purposes: frozenset[Purpose] = field(repr=False)
    throughout: frozenset[Purpose] = field(default=frozenset(), repr=False)
    """Of these, the ones below which it is for everything, too."""

    def is_for(self, purpose: Purpose) -> bool:
        """Tell whether it may be used for a purpose: granted itself, or below one that it is all for."""
        return purpose in self.purposes or not self.throughout.isdisjoint(ancestors(purpose))


class Opener:
    """A reader: opens with the keys of all its grants, those of past epochs included."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        # By epoch and key: what was granted with it. Grants share the keys of what is above both.
        self._keys: dict[int, dict[PurposeKey, set[CoverElement]]] = {}
        for grant in grants:
            for epoch, keys in zip(grant.epochs, grant.keys, strict=True):
                held = self._keys.setdefault(epoch, {})
                for element, key in keys.items():
                    held.setdefault(key, set()).add(CoverElement(grant.purpose, element.whole))
        self._shared: OrderedDict[tuple[int, bytes], list[tuple[bytes, set[CoverElement]]]] = OrderedDict()

    def open(self, data: bytes) -> OpenedContent:
        """Return what is in a message and for which of the purposes granted; raise `PurposeError`."""
        epoch, own, nonce, end = _read_header(data)
        slots = {data[at : at + _TAG]: at + _TAG for at in range(_HEADER, end, _SLOT)}
        found: dict[bytes, set[CoverElement]] = {}
        for secret, granted in self._secrets(epoch, own):
            mask = _mask(secret, nonce)
            at = slots.get(mask[:_TAG])
            if at is not None:
                found.setdefault(_xor(mask[_TAG:], data[at : at + _KEY]), set()).update(granted)
        if not found:
            raise PurposeError(_WHAT, PurposeProblem.NOT_GRANTED)
        if len(found) > 1:  # a writer has one content key; several would cost as many attempts
            raise PurposeError(_WHAT, PurposeProblem.CHANGED)
        ((key, allowed),) = found.items()
        try:
            content = aead_open(data[end:], data[:end], nonce, key)
        except (CryptoError, ValueError):
            raise PurposeError(_WHAT, PurposeProblem.CHANGED) from None
        throughout = frozenset(one.purpose for one in allowed if one.whole)
        return OpenedContent(content, frozenset(one.purpose for one in allowed), throughout)

    def _secrets(self, epoch: int, own: bytes) -> list[tuple[bytes, set[CoverElement]]]:
        place = epoch, own
        found = self._shared.get(place)
        if found is None:
            try:
                found = [
                    (_secret(shared_secret(key, own), own, key.public()), granted)
                    for key, granted in self._keys.get(epoch, {}).items()
                ]
            except AuthenticationError:
                raise PurposeError(_WHAT, PurposeProblem.FORM) from None
            self._shared[place] = found
            if len(self._shared) > MAX_WRITERS:
                self._shared.popitem(last=False)
        self._shared.move_to_end(place)
        return found


def _read_header(data: bytes) -> tuple[int, bytes, bytes, int]:
    """Return epoch, one-time key, nonce, and where the slots end."""
    count = int.from_bytes(data[_HEADER - _COUNT : _HEADER], "big")
    end = _HEADER + count * _SLOT
    if not (is_sealed(data) and count in SLOT_COUNTS and end + TAG <= len(data) <= MAX_SEALED):
        raise PurposeError(_WHAT, PurposeProblem.FORM)
    at = len(MARK) + _EPOCH
    epoch = int.from_bytes(data[len(MARK) : at], "big")
    return epoch, data[at : at + _KEY], data[at + _KEY : _HEADER - _COUNT], end


def _slots(elements: int) -> int:
    return next(count for count in SLOT_COUNTS if count >= elements)


def _secret(agreed: bytes, own: bytes, public: bytes) -> bytes:
    return digest(Domain.PURPOSE_AGREED, own, public, key=agreed)


def _mask(secret: bytes, nonce: bytes) -> bytes:
    # Fresh for each message: nonces are random, and a content key is masked with no bytes twice.
    return digest(Domain.PURPOSE_WRAP, nonce, key=secret, size=_SLOT)


def _masked(secret: bytes, nonce: bytes, slot: bytes) -> bytes:
    return _xor(_mask(secret, nonce), slot)


def _xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")
