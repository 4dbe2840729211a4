"""A porter's queue for one daemon: five letters leave it each round, whatever comes in."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from hushcast_protocol.base.crypto.secrets import Randomness, below, sample
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.cover.cover_rules import LETTERS_A_ROUND, PASSED_A_ROUND, CoverRules
from hushcast_protocol.cover.letters import OpenedLetter

MAX_LETTERS_WAITING = 640  # of one daemon; 2.5 MB: 576 come in a day of rounds of 600 s, all held at the most
SERVED_DAYS = 2  # days of 24 epochs at least that letters pass for a daemon that is away
SERVED_MORE_DAYS = 2  # such days at most besides, drawn for each: when it ends tells a second nothing


class PorterQueue:
    """What one daemon handed in and is not passed on yet.

    A second relay sees the letters of a porter. It would see when the porter's daemons are there if fewer of
    them passed while they are away, and when one begins or ends: so both are moved by a random while.
    """

    def __init__(self, rules: CoverRules, now: int, randomness: Randomness) -> None:
        self._rules = rules
        self._randomness = randomness
        self._waiting: list[tuple[int, bytes, OpenedLetter]] = []
        self._came = (now, 0)  # the round in which letters came last, and how many
        self.last_there = now
        """The round in which letters came last."""
        self.begins = now + below(randomness, rules.held_rounds)
        """The first round in which letters are passed; the daemon is told, and sends empty ones before."""
        more = below(randomness, rules.rounds_in(SERVED_MORE_DAYS) + 1)
        self.patience = rules.rounds_in(SERVED_DAYS) + more
        """Rounds without the daemon after which its letters end."""

    def resume(self, begins: int, patience: int, last_there: int) -> None:
        """Go on as before a restart; raise `DecodeError` where no queue can have been so."""
        rules = self._rules
        longest = rules.rounds_in(SERVED_DAYS) + rules.rounds_in(SERVED_MORE_DAYS)
        if not rules.rounds_in(SERVED_DAYS) <= patience <= longest:
            raise DecodeError("a place is kept as none was given")
        self.begins, self.patience, self.last_there = begins, patience, last_there

    def __len__(self) -> int:
        """Return how many letters wait."""
        return len(self._waiting)

    def take(self, letter: OpenedLetter, now: int) -> bool:
        """Take an opened letter in a round; tell whether it waits now.

        Raises `Refusal`: "rate" over four in a round, "day" where it is due before now or in more than a day,
        "quota" where too many wait. Until the queue begins letters are thrown away.
        """
        count = self._came[1] + 1 if self._came[0] == now else 1
        if count > LETTERS_A_ROUND:
            raise Refusal("rate")
        self._came = now, count
        self.last_there = now
        if now < self.begins:
            return False
        if not now <= letter.due <= now + self._rules.held_rounds:
            raise Refusal("day")
        if len(self._waiting) >= MAX_LETTERS_WAITING:
            raise Refusal("quota")
        heapq.heappush(self._waiting, (letter.due, self._randomness(8), letter))
        return True

    def restore(self, letter: OpenedLetter, came: int) -> None:
        """Take a letter that waited before a restart, by the round in which it came; raise `DecodeError`."""
        if not came <= letter.due <= came + self._rules.held_rounds or came < self.begins:
            raise DecodeError("a letter is kept that was not taken")
        if len(self._waiting) >= MAX_LETTERS_WAITING:
            raise DecodeError("more letters are kept than wait")
        heapq.heappush(self._waiting, (letter.due, self._randomness(8), letter))

    def has_ended(self, now: int) -> bool:
        """Tell whether the daemon has been away for so long that its letters end."""
        return now - self.last_there > self.patience

    def end_round(self, now: int, empty: Callable[[], bytes]) -> list[bytes]:
        """Return the five letters of the round that ends, in random order; none before the queue begins.

        What is over five, or was due before, is lost: a second would know a letter that comes later than it
        is due for a daemon's. `empty` makes a letter that is due in this round and names the same waybill.
        """
        if now < self.begins or self.has_ended(now):
            return []
        due: list[bytes] = []
        while self._waiting and self._waiting[0][0] <= now:
            letter = heapq.heappop(self._waiting)[2]
            due += [letter.inside] if letter.due == now else []
        passed = sample(self._randomness, due, PASSED_A_ROUND)
        passed += [empty() for _ in range(PASSED_A_ROUND - len(passed))]
        return sample(self._randomness, passed, len(passed))
