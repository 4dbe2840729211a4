"""What a second or third holds of one round: each letter once, passed on together in random order."""

from __future__ import annotations

from typing import Generic, TypeVar

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, sample
from hushcast_protocol.base.errors import AuthenticationError, Refusal

T = TypeVar("T")

# Letters that wait for the end of a round: 80 MB. 10,000 daemons on lists of 8 send 6,250 in each.
MAX_LETTERS_HELD = 20_480


class LetterBatch(Generic[T]):
    """Letters of the round that ends next, and their digests.

    What comes later than that is lost: passed on with a later round's letters it would be known for one of
    the few that were late, and a porter could have its daemon's be those.
    """

    def __init__(self, first: int) -> None:
        """`first` is the first round whose letters it takes, after a start the next one.

        What came before a start is forgotten, and whoever sent it again would see where it comes out.
        """
        self._first = first
        self._seen: set[bytes] = set()
        self._held: list[T] = []

    def __len__(self) -> int:
        """Return how many letters wait for the end of the round."""
        return len(self._held)

    def check_new(self, sealed: bytes) -> bytes:
        """Return the digest of a letter; raise `AuthenticationError` where it was taken before."""
        name = digest(Domain.LETTER, sealed)
        if name in self._seen:
            raise AuthenticationError("a letter was seen before")
        return name

    def check_due(self, due: int, now: int) -> None:
        """Raise `Refusal`: "day" where it is not due in the round that ends, "quota" where that is full."""
        if due != now or due < self._first:
            raise Refusal("day")
        if len(self._held) >= MAX_LETTERS_HELD:
            raise Refusal("quota")

    def hold(self, name: bytes, letter: T) -> None:
        """Hold a letter that was checked until the end of the round."""
        self._seen.add(name)
        self._held.append(letter)

    def end_round(self, randomness: Randomness) -> list[T]:
        """Return all letters of the round that ends, in random order; its letters are taken no more."""
        self._seen.clear()
        passed, self._held = sample(randomness, self._held, len(self._held)), []
        return passed
