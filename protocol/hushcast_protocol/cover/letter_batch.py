"""What a second or third holds of one round: each letter once, passed on together in random order."""

from __future__ import annotations

from typing import Generic, TypeVar

from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.secrets import Randomness, sample
from hushcast_protocol.cover.cover_rules import LATE_FOR

T = TypeVar("T")

# Letters that wait for the end of a round: 80 MB. 10,000 daemons on lists of 8 send 6,250 in each.
MAX_LETTERS_HELD = 20_480
MAX_LETTERS_REMEMBERED = 250_000  # letters; 10,000 daemons on lists of 8 are 225,000 in `LATE_FOR` rounds


class LetterBatch(Generic[T]):
    """Letters that wait for the end of a round, and digests of those that came lately."""

    def __init__(self, first: int) -> None:
        """`first` is the first round whose letters it takes, after a start the next one.

        What came before a start is forgotten, and whoever sent it again would see where it comes out.
        """
        self._first = first
        self._seen: dict[int, set[bytes]] = {}  # by the round in which they are due: they go together
        self._held: list[T] = []

    def __len__(self) -> int:
        """Return how many letters wait for the end of the round."""
        return len(self._held)

    def check_new(self, sealed: bytes) -> bytes:
        """Return the digest of a letter; raise `AuthenticationError` where it was taken before."""
        name = digest(Domain.LETTER, sealed)
        if any(name in seen for seen in self._seen.values()):
            raise AuthenticationError("a letter was seen before")
        return name

    def check_due(self, due: int, now: int) -> None:
        """Raise `Refusal`: "day" where a letter is not due or too late, "quota" where too many came."""
        if due < self._first or not due <= now <= due + LATE_FOR:
            raise Refusal("day")
        remembered = sum(map(len, self._seen.values()))
        if remembered >= MAX_LETTERS_REMEMBERED or len(self._held) >= MAX_LETTERS_HELD:
            raise Refusal("quota")

    def hold(self, name: bytes, due: int, letter: T) -> None:
        """Hold a letter that was checked until the end of the round."""
        self._seen.setdefault(due, set()).add(name)
        self._held.append(letter)

    def end_round(self, now: int, randomness: Randomness) -> list[T]:
        """Return all letters of the round that ends, in random order; forget those too old to be taken."""
        self._seen = {due: seen for due, seen in self._seen.items() if due + LATE_FOR >= now}
        passed, self._held = sample(randomness, self._held, len(self._held)), []
        return passed
