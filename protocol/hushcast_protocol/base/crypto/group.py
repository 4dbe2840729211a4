"""The group of re-routable encryption: the subgroup of prime order of Ed25519's curve, and its scalars.

Every point from outside is multiplied before it is used, and libsodium multiplies only points of the subgroup
in their one encoding, the neutral one excluded: what is not in the group is an `AuthenticationError`.
"""

from __future__ import annotations

from typing import Self

from nacl.bindings import (
    crypto_core_ed25519_add,
    crypto_core_ed25519_from_uniform,
    crypto_core_ed25519_is_valid_point,
    crypto_core_ed25519_scalar_add,
    crypto_core_ed25519_scalar_invert,
    crypto_core_ed25519_scalar_mul,
    crypto_core_ed25519_scalar_reduce,
    crypto_core_ed25519_sub,
    crypto_scalarmult_ed25519_base_noclamp,
    crypto_scalarmult_ed25519_noclamp,
)
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import Bytes32

Point = Bytes32
"""An element of the group, encoded as Ed25519 does."""

ORDER = 2**252 + 27742317777372353535851937790883648493
_WIDE = 64  # bytes; reduced modulo the order they are uniform but for 2^-259


class Scalar(Secret):
    """A number from 1 to the group's order less 1, 32 bytes, the least significant first."""

    __slots__ = ("_inverse",)

    def __init__(self, value: bytes) -> None:
        """Raise `ValueError` where the bytes are no such number."""
        super().__init__(value)
        if not 0 < int.from_bytes(value, "little") < ORDER:
            raise ValueError("a scalar is out of range")

    @classmethod
    def draw(cls, randomness: Randomness) -> Self:
        """Draw a scalar, uniformly."""
        return cls.of_seed(randomness(_WIDE))

    @classmethod
    def of_seed(cls, seed: bytes) -> Self:
        """Return the scalar that 64 uniform bytes stand for."""
        return cls(crypto_core_ed25519_scalar_reduce(seed))

    def times(self, other: Scalar) -> Scalar:
        """Return the product."""
        return Scalar(crypto_core_ed25519_scalar_mul(self._value, other._value))

    def plus(self, other: Scalar) -> Scalar:
        """Return the sum; raise `ValueError` where that is zero."""
        return Scalar(crypto_core_ed25519_scalar_add(self._value, other._value))

    def inverse(self) -> Scalar:
        """Return the scalar by which this one gives 1, computed once."""
        if not hasattr(self, "_inverse"):
            self._inverse = Scalar(crypto_core_ed25519_scalar_invert(self._value))
        return self._inverse


def received_scalar(value: bytes) -> Scalar:
    """Return a scalar that came from outside; raise `AuthenticationError` where it is none."""
    try:
        return Scalar(value)
    except ValueError:
        raise AuthenticationError("a scalar is out of range") from None


def hashed(data: bytes) -> bytes:
    """Return the point that `data` hashes to; nobody knows its logarithm."""
    return crypto_core_ed25519_from_uniform(digest(Domain.POINT, data))


def base(scalar: Scalar) -> bytes:
    """Return the generator times `scalar`."""
    return crypto_scalarmult_ed25519_base_noclamp(scalar.reveal())


def multiplied(scalar: Scalar, point: bytes) -> bytes:
    """Return `point` times `scalar`; raise `AuthenticationError` where the point is not in the group."""
    try:
        return crypto_scalarmult_ed25519_noclamp(scalar.reveal(), point)
    except CryptoError:
        raise AuthenticationError("a point is not in the group") from None


def added(one: bytes, other: bytes) -> bytes:
    """Return the sum of two points of the group."""
    return crypto_core_ed25519_add(one, other)


def subtracted(one: bytes, other: bytes) -> bytes:
    """Return the difference of two points of the group."""
    return crypto_core_ed25519_sub(one, other)


def check_point(point: bytes) -> None:
    """Raise `AuthenticationError` where a point that will not be multiplied is not in the group."""
    if not crypto_core_ed25519_is_valid_point(point):
        raise AuthenticationError("a point is not in the group")
