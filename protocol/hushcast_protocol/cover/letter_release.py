"""A third's release: what came in letters goes on together, once an hour, in random order.

A porter knows in which round each letter of its daemons is due. If a message came out behind that round, one
that loses rounds, and somebody who reads the topic, would strike off with each message all whose letters of
that round were lost. So it comes out with those of other rounds; and where too much comes, what is lost is
drawn from all rounds alike, or who fills an hour early would have only its first rounds come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hushcast_protocol.base.crypto.secrets import Randomness, below, shuffled
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules

# Bodies of letters of one second that wait to go on together, 12 MB: so many are listed as done in six rounds
# (`DONE_A_ROUND`). 2,000 daemons on lists of 8 that all read have 85.
MAX_HELD_BACK = 3_000


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
        self._rules = rules
        # Each by the round at whose end it goes on, and by second.
        self._held: dict[tuple[int, RelayId], list[HeldBody]] = {}
        self._came: Counter[tuple[int, RelayId]] = Counter()

    def hold(self, held: HeldBody, randomness: Randomness) -> bool:
        """Hold what came; tell whether there was room: of too many of one second one is lost at random."""
        key = self._rules.released_in(held.round), held.second
        room = self._held.setdefault(key, [])
        self._came[key] += 1
        if len(room) < MAX_HELD_BACK:
            room.append(held)
            return True
        if (place := below(randomness, self._came[key])) < MAX_HELD_BACK:
            room[place] = held
        return False

    def let_go(self, now: int, randomness: Randomness) -> Iterator[HeldBody]:
        """Return at the end of a round what goes on then, in random order, drawn one by one."""
        gone: list[HeldBody] = []
        for key in [key for key in self._held if key[0] <= now]:
            gone += self._held.pop(key)
            del self._came[key]
        return shuffled(randomness, gone)
