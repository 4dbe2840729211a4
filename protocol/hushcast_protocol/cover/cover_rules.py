"""What all daemons of a network hold alike about cover: the length of a round, and of the lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hushcast_protocol.base.cover_terms import LEAST_ROUND, LEAST_WIDTH, LONGEST_ROUND, MAX_WIDTH
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import UsageError

LETTERS_A_ROUND = 4  # of a daemon: a tree over 500 relays takes 66 of a day's 576 letters
AT_ONCE_A_ROUND = 3  # of these; the others are held, whether or not there is anything in them
PASSED_A_ROUND = 5  # letters that a porter passes for a daemon: one more than come, or its queue would grow
# Held letters of a daemon that may be due in one round: what is over five at its porter is lost.
DUE_A_ROUND = PASSED_A_ROUND - AT_ONCE_A_ROUND
RECEIPT_ROUNDS = 4  # from the one in which a letter is due to that in which its daemon reads that it came
# A third lets all go together that came in so many rounds, an hour of 600 s: when a message comes out does
# not say in which of them its letter passed (docs/decisions/0103-thirds-let-go-by-the-hour.md).
RELEASE_ROUNDS = 6
HELD_DAYS = 1  # days of 24 epochs; a held letter is due a round drawn uniformly within them
# A second passes this part of a round after its end, 60 s of 600; a third as long again after it, and lists
# go down as long again after that.
_PARTS = 10


@dataclass(frozen=True, slots=True)
class CoverRules:
    """Lengths of one network; raises `UsageError` where they are out of range."""

    network: bytes
    """32 bytes, its id."""
    epoch_seconds: int
    round_seconds: int = 600
    width: int = LEAST_WIDTH
    """Relays of each list: 4 below 1,000 daemons with cover, 8 to 2,000, 16 above."""

    def __post_init__(self) -> None:
        if not LEAST_ROUND <= self.round_seconds <= LONGEST_ROUND:
            raise UsageError(f"a round of cover takes {LEAST_ROUND} to {LONGEST_ROUND} seconds")
        if not LEAST_WIDTH <= self.width <= MAX_WIDTH:
            raise UsageError(f"a list of cover has {LEAST_WIDTH} to {MAX_WIDTH} relays")

    @property
    def held_rounds(self) -> int:
        """Rounds within which a held letter is due."""
        return self.rounds_in(HELD_DAYS)

    def rounds_in(self, days: int) -> int:
        """Return how many rounds so many days of 24 epochs have, at least one."""
        return max(1, days * EPOCHS_A_DAY * self.epoch_seconds // self.round_seconds)

    def round_at(self, now: float) -> int:
        """Return the round at a Unix time."""
        return int(now // self.round_seconds)

    def end_of(self, number: int) -> float:
        """Return the Unix time at which a round ends, and porters pass its letters."""
        return float((number + 1) * self.round_seconds)

    def passed_at(self, number: int) -> float:
        """Return the Unix time at which seconds pass the letters of a round."""
        return self.end_of(number) + self.round_seconds / _PARTS

    def dealt_at(self, number: int) -> float:
        """Return the Unix time at which thirds deal with the letters of a round, and list others."""
        return self.end_of(number) + 2 * self.round_seconds / _PARTS

    def released_in(self, due: int) -> int:
        """Return the round at whose end a third lets go what is in a letter that is due in a round."""
        return due // RELEASE_ROUNDS * RELEASE_ROUNDS + RELEASE_ROUNDS - 1

    def released_at(self, due: int) -> float:
        """Return the Unix time of that."""
        return self.dealt_at(self.released_in(due))

    def listed_in(self, due: int) -> int:
        """Return the round by which a third lists what was in it as done: an hour's worth takes several."""
        return self.released_in(due) + RELEASE_ROUNDS - 1

    @property
    def receipt_rounds(self) -> int:
        """Rounds from the one in which a letter is due to the receipt of what is in it, at the most."""
        return 2 * (RELEASE_ROUNDS - 1) + RECEIPT_ROUNDS

    def listed_at(self, number: int) -> float:
        """Return the Unix time at which seconds hand lists down that thirds have sent by then."""
        return self.end_of(number) + 3 * self.round_seconds / _PARTS

    def next_of(self, moment: Callable[[int], float], now: float) -> int:
        """Return the round whose `moment` of a few, behind its end, comes next."""
        number = self.round_at(now)
        return number - 1 if moment(number - 1) > now else number

    def epoch_at(self, number: int) -> int:
        """Return the epoch in which a round begins."""
        return number * self.round_seconds // self.epoch_seconds
