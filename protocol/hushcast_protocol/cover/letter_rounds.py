"""A daemon's rounds: four letters in each, three at once and one held, with messages in them or not."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.secrets import Randomness, below, sample
from hushcast_protocol.cover.cover_rules import AT_ONCE_A_ROUND, DUE_A_ROUND, LETTERS_A_ROUND, CoverRules
from hushcast_protocol.cover.letter_contents import MAX_LETTER_BODY
from hushcast_protocol.cover.letters import SealedLetter

# Messages of one daemon that wait for a letter or a receipt: 1 MB. A day's letters are 576.
MAX_UNDER_COVER = 256
RECEIPT_ROUNDS = 4  # rounds from the one in which a letter is due to its receipt; then the message goes anew
LOOPS = 40  # letters that are looked back at; with half of them lost by chance, more than half are lost

SealLetter = Callable[[int, bytes | None], SealedLetter]
"""Seals a letter that is due in a round, with a message or without."""


@dataclass(slots=True)
class _Covered:
    """A message under cover, and its letter under way."""

    body: bytes
    is_held: bool
    until: int
    """The last round in which it may go anew."""
    number: bytes | None = None
    waits_until: int = 0


class LetterRounds:
    """What one daemon publishes under cover; it never goes another way."""

    def __init__(self, rules: CoverRules, randomness: Randomness) -> None:
        self._rules = rules
        self._randomness = randomness
        self._messages: list[_Covered] = []
        self._held_due: Counter[int] = Counter()
        self._loops: dict[bytes, int] = {}
        self._came_back: deque[bool] = deque(maxlen=LOOPS)
        self._given_up: list[bytes] = []

    def publish(self, body: bytes, now: int, is_held: bool) -> None:
        """Let a sealed message go in a letter: at once, or held, due within a day.

        Raises `Refusal` where it is too large for a letter, or too many wait.
        """
        if not 0 < len(body) <= MAX_LETTER_BODY:
            raise Refusal(f"a message under cover has 1 to {MAX_LETTER_BODY} bytes when it is sealed")
        if len(self._messages) >= MAX_UNDER_COVER:
            raise Refusal("too many messages wait for a letter: publish later")
        self._messages.append(_Covered(body, is_held, now + self._rules.held_rounds * (2 if is_held else 1)))

    def letters(self, now: int, seal: SealLetter) -> list[SealedLetter]:
        """Return the four letters of a round in random order: what waits longest goes first."""
        self._look_back(now)
        made = [self._letter(now, seal, is_held=False) for _ in range(AT_ONCE_A_ROUND)]
        made += [self._letter(now, seal, is_held=True) for _ in range(LETTERS_A_ROUND - AT_ONCE_A_ROUND)]
        return sample(self._randomness, made, len(made))

    def note_listed(self, numbers: Collection[bytes]) -> None:
        """Take a third's list: what is on it is done."""
        self._messages = [one for one in self._messages if one.number is None or one.number not in numbers]
        for number in self._loops.keys() & numbers:
            del self._loops[number]
            self._came_back.append(True)

    def given_up(self) -> list[bytes]:
        """Return once each message that no letter brought there in time: its user is told."""
        told, self._given_up = self._given_up, []
        return told

    @property
    def waiting(self) -> int:
        """Messages without a receipt."""
        return len(self._messages)

    @property
    def loops_lost(self) -> bool:
        """Whether more than half of the last loops did not come back; not before there are as many."""
        return len(self._came_back) == LOOPS and 2 * sum(self._came_back) < LOOPS

    def _letter(self, now: int, seal: SealLetter, is_held: bool) -> SealedLetter:
        due = self._held_until(now) if is_held else now
        waiting = (one for one in self._messages if one.number is None and one.is_held == is_held)
        message = next(waiting, None)
        letter = seal(due, message.body if message else None)
        if message is not None:
            message.number, message.waits_until = letter.receipt.number, due + RECEIPT_ROUNDS
        elif letter.receipt.is_loop:
            self._loops[letter.receipt.number] = due + RECEIPT_ROUNDS
        return letter

    def _held_until(self, now: int) -> int:
        """Draw a round within a day in which not too many held letters are due."""
        self._held_due = Counter({due: count for due, count in self._held_due.items() if due > now})
        day = range(now + 1, now + self._rules.held_rounds + 1)
        free = [due for due in day if self._held_due[due] < DUE_A_ROUND]
        due = free[below(self._randomness, len(free))]
        self._held_due[due] += 1
        return due

    def _look_back(self, now: int) -> None:
        """Let messages whose receipt did not come go anew, or give them up; count loops that are lost."""
        for number, until in list(self._loops.items()):
            if until < now:
                del self._loops[number]
                self._came_back.append(False)
        for message in self._messages:
            if message.number is not None and message.waits_until < now:
                message.number = None
        gone = [one for one in self._messages if one.number is None and one.until < now]
        self._given_up += [one.body for one in gone]
        self._messages = [one for one in self._messages if one not in gone]
