"""Keys that act on elements and commute: layers can be put on and taken off in any order.

As published, an element is the word itself and a key is XORed to it, another one for each item: v ⊕ k and
w ⊕ k would give v ⊕ w. Hardened, an element is a point that the word hashes to and a key is a scalar, the
same for all items of a day: k·H(v) and k·H(w) say nothing of each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hushcast_protocol.base.crypto.group import Scalar, hashed, multiplied, received_scalar
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError

ELEMENT = 32  # bytes of an element, and of a key
KEY_SEED = 64  # uniform bytes that a key is made of

_ONE = Scalar((1).to_bytes(32, "little"))


class Pad(Secret):
    """A key as published: 32 bytes that are XORed."""

    __slots__ = ()


class GroupAction(Protocol):
    """A commutative group of keys and what it acts on. Keys are of the action's own kind."""

    is_one_time: bool
    """Whether a key may lie on one thing alone, and the keys of a pair are updated for each."""

    def updated(self, key: Secret, number: int) -> Secret:
        """Return a pair's key as it is on the item with this number."""

    def element(self, word: bytes) -> bytes:
        """Return the element (32 bytes) of a word (32 bytes at most)."""

    def key(self, seed: bytes) -> Secret:
        """Return the key that 64 uniform bytes stand for."""

    def received(self, value: bytes) -> Secret:
        """Return a key that came from outside, 32 bytes; raise `AuthenticationError` where it is none."""

    def wrap(self, key: Secret, element: bytes) -> bytes:
        """Put a layer on; raise `AuthenticationError` where 32 bytes from outside are no element."""

    def strip(self, key: Secret, element: bytes) -> bytes:
        """Take a layer off; raises as `wrap`."""

    def product(self, keys: Iterable[Secret]) -> Secret:
        """Return the key that does what all of them do; of none, the one that does nothing."""

    def inverse(self, key: Secret) -> Secret:
        """Return the key that takes off what this one puts on."""


class _Pads:
    is_one_time = True

    def updated(self, key: Secret, number: int) -> Secret:
        # The paper hashes a key once more for each item (V-E), h(h(k)): then whoever says a high number has
        # others hash for long. A hash with the number gives another pad for each item as well.
        return Pad(digest(Domain.PAD, number.to_bytes(8, "big"), key=key.reveal(), size=ELEMENT))

    def element(self, word: bytes) -> bytes:
        if len(word) > ELEMENT:
            raise ValueError("a word is longer than a pad")
        return word.ljust(ELEMENT, b"\x00")

    def key(self, seed: bytes) -> Secret:
        return Pad(seed[:ELEMENT])

    def received(self, value: bytes) -> Secret:
        return Pad(value)

    def wrap(self, key: Secret, element: bytes) -> bytes:
        return _xor(key.reveal(), element)

    def strip(self, key: Secret, element: bytes) -> bytes:
        return _xor(key.reveal(), element)

    def product(self, keys: Iterable[Secret]) -> Secret:
        found = bytes(ELEMENT)
        for key in keys:
            found = _xor(found, key.reveal())
        return Pad(found)

    def inverse(self, key: Secret) -> Secret:
        return key


class _Group:
    is_one_time = False

    def updated(self, key: Secret, number: int) -> Secret:
        return key

    def element(self, word: bytes) -> bytes:
        return hashed(word)

    def key(self, seed: bytes) -> Secret:
        return Scalar.of_seed(seed)

    def received(self, value: bytes) -> Secret:
        return received_scalar(value)

    def wrap(self, key: Secret, element: bytes) -> bytes:
        return multiplied(_scalar(key), element)

    def strip(self, key: Secret, element: bytes) -> bytes:
        return multiplied(_scalar(key).inverse(), element)

    def product(self, keys: Iterable[Secret]) -> Secret:
        found: Scalar | None = None
        for key in keys:
            found = _scalar(key) if found is None else found.times(_scalar(key))
        return found or _ONE

    def inverse(self, key: Secret) -> Secret:
        return _scalar(key).inverse()


PADS: GroupAction = _Pads()
"""As published: XOR."""
GROUP: GroupAction = _Group()
"""Hardened: points of the subgroup of prime order of Ed25519's curve, times scalars."""


def _scalar(key: Secret) -> Scalar:
    assert isinstance(key, Scalar), "a key of this action"
    return key


def _xor(one: bytes, other: bytes) -> bytes:
    if len(other) != ELEMENT:
        raise AuthenticationError("an element has 32 bytes")
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(ELEMENT, "big")
