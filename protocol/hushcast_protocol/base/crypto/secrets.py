"""Secret byte strings that hide themselves in `repr`, compare in constant time and do not pickle."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import ClassVar, NoReturn, Self, TypeVar

from nacl.public import PrivateKey
from nacl.signing import SigningKey

T = TypeVar("T")

Randomness = Callable[[int], bytes]
"""Gives that many random bytes: `os.urandom` in daemons, a seeded stream in simulations."""


def uniform(randomness: Randomness, low: float, high: float) -> float:
    """Draw a number between `low` and `high`."""
    return low + (high - low) * int.from_bytes(randomness(7), "big") / 2**56


def below(randomness: Randomness, bound: int) -> int:
    """Draw a whole number from 0 to `bound` - 1."""
    # 64 bits over the bound make the bias of the remainder smaller than 2^-64.
    size = (bound.bit_length() + 64 + 7) // 8
    return int.from_bytes(randomness(size), "big") % bound


def shuffled(randomness: Randomness, items: Iterable[T]) -> Iterator[T]:
    """Draw all items in random order, one by one: ten thousands at once are a long step."""
    pool = list(items)
    while pool:
        index = below(randomness, len(pool))
        pool[index], pool[-1] = pool[-1], pool[index]
        yield pool.pop()


def sample(randomness: Randomness, items: Collection[T], count: int) -> list[T]:
    """Draw `count` different items, or all if there are fewer, in random order."""
    return list(islice(shuffled(randomness, items), count))


class Secret:
    """Bytes of a fixed length that never show themselves; `reveal()` is the one way to read them."""

    LENGTH: ClassVar[int] = 32
    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        if not isinstance(value, bytes) or len(value) != self.LENGTH:
            raise ValueError(f"{type(self).__name__} takes {self.LENGTH} bytes")
        self._value = value

    def reveal(self) -> bytes:
        """Return the bytes themselves."""
        return self._value

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is not to be pickled")

    @classmethod
    def draw(cls, randomness: Randomness) -> Self:
        """Draw a fresh secret."""
        return cls(randomness(cls.LENGTH))


class Seed(Secret):
    """Seed of an Ed25519 key: a relay's identity, an onion service, a box."""

    __slots__ = ("_grown",)

    def signing_key(self) -> SigningKey:
        """Return the signing key grown from this seed."""
        if not hasattr(self, "_grown"):
            self._grown = SigningKey(self._value)
        return self._grown

    def public(self) -> bytes:
        """Return the 32 bytes of the Ed25519 public key."""
        return bytes(self.signing_key().verify_key)


class AgreementKey(Secret):
    """X25519 private key."""

    __slots__ = ("_grown",)

    def private_key(self) -> PrivateKey:
        """Return the key in the form PyNaCl wants."""
        if not hasattr(self, "_grown"):
            self._grown = PrivateKey(self._value)
        return self._grown

    def public(self) -> bytes:
        """Return the 32 bytes of the X25519 public key."""
        return bytes(self.private_key().public_key)


class ParcelKey(AgreementKey):
    """X25519 private key under which a relay opens parcels."""

    __slots__ = ()


class EpochKey(Secret):
    """What the members of a community share for one of its epochs."""

    __slots__ = ()


class TopicKey(Secret):
    """Key of one topic for one day: its tokens and the seal of its bodies come from it."""

    __slots__ = ()


class FilterKey(Secret):
    """A relay's own key for hashing elements into its routing table."""

    __slots__ = ()


class TopicSecret(Secret):
    """What a private topic's link carries: who has it can find and read the topic."""

    __slots__ = ()


class LeaseSecret(Secret):
    """What only the subscriber knows of an installation: words and ids of its leases come from it."""

    __slots__ = ()
