"""What a second or third holds of one round: letters opened once each, passed on together in random order."""

from __future__ import annotations

from collections.abc import Collection

from hushcast_protocol.base.errors import AuthenticationError, Refusal
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.secrets import ParcelKey, Randomness, sample
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import LATE_FOR, CoverRules
from hushcast_protocol.cover.letters import OpenedLetter, Stage, open_letter

MAX_LETTERS_REMEMBERED = 250_000  # letters; 10,000 daemons on lists of 8 are 225,000 in `LATE_FOR` rounds


class LetterBatch:
    """One relay at one stage behind the porter."""

    def __init__(
        self,
        rules: CoverRules,
        stage: Stage,
        relay: RelayId,
        key: ParcelKey,
        onward: Collection[RelayId],
    ) -> None:
        """`onward` is whom it may pass letters to: the thirds of the quarter, or nobody's id."""
        self._rules = rules
        self._stage = stage
        self._relay = relay
        self._key = key
        self._onward = onward
        self._seen: dict[bytes, int] = {}
        self._held: list[OpenedLetter] = []

    def __len__(self) -> int:
        """Return how many letters wait for the end of the round."""
        return len(self._held)

    def take(self, sealed: bytes, now: int) -> None:
        """Open a letter in a round, and hold it until its end.

        Raises a `PeerError` where it is not for this relay or was seen before, `Refusal` ("day") where it is
        not due or too late, and `Refusal` ("quota") where too many came lately.
        """
        name = digest(Domain.LETTER, sealed)
        if name in self._seen:
            raise AuthenticationError("a letter was seen before")
        letter = open_letter(self._rules, self._stage, self._relay, self._key, sealed)
        if not letter.due <= now <= letter.due + LATE_FOR:
            raise Refusal("day")
        if letter.onward not in self._onward:
            raise AuthenticationError("a letter is to be passed to a relay that is not on the list")
        if len(self._seen) >= MAX_LETTERS_REMEMBERED:
            raise Refusal("quota")
        self._seen[name] = letter.due + LATE_FOR
        self._held.append(letter)

    def end_round(self, now: int, randomness: Randomness) -> list[OpenedLetter]:
        """Return all letters of the round that ends, in random order; forget those too old to be taken."""
        self._seen = {name: last for name, last in self._seen.items() if last >= now}
        passed, self._held = sample(randomness, self._held, len(self._held)), []
        return passed
