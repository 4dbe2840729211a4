"""A third's release: what came in letters goes on together, once an hour, in random order.

A porter knows in which round each letter of its daemons is due. If a message came out behind that round, one
that loses rounds, and somebody who reads the topic, would strike off with each message all whose letters of
that round were lost. So it comes out with those of other rounds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hushcast_protocol.base.crypto.secrets import Randomness, sample
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules

# Bodies of letters that wait to go on together: 32 MB. 2,000 daemons on lists of 8 that all read are 680.
MAX_HELD_BACK = 8_192


@dataclass(frozen=True, slots=True, repr=False)
class HeldBody:
    """The body of a letter that came."""

    second: RelayId
    done: bytes
    """The number that is listed once it was dealt with."""
    body: bytes
    round: int
    """The round in which its letter was due."""


class LetterRelease:
    """What one third holds back."""

    def __init__(self, rules: CoverRules) -> None:
        """All seconds of a list share the room."""
        self._rules = rules
        self._share = MAX_HELD_BACK // rules.width
        self._held: list[HeldBody] = []
        self._counts: Counter[RelayId] = Counter()

    def hold(self, held: HeldBody) -> bool:
        """Hold what came; tell whether there was room: of too many of one second it is lost."""
        if self._counts[held.second] >= self._share:
            return False
        self._counts[held.second] += 1
        self._held.append(held)
        return True

    def let_go(self, now: int, randomness: Randomness) -> list[HeldBody]:
        """Return at the end of a round what goes on then, in random order."""
        gone = [one for one in self._held if self._rules.released_in(one.round) <= now]
        if gone:
            self._held = [one for one in self._held if self._rules.released_in(one.round) > now]
            self._counts = Counter(one.second for one in self._held)
        return sample(randomness, gone, len(gone))
