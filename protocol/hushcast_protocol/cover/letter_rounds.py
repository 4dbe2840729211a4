"""A daemon's rounds: four letters in each, three at once and one held, with messages in them or not."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.secrets import Randomness, below, sample
from hushcast_protocol.cover.cover_rules import AT_ONCE_A_ROUND, LETTERS_A_ROUND, CoverRules
from hushcast_protocol.cover.letters import MAX_LETTER_BODY, NUMBER, LetterContent, LetterKind

# Messages of one daemon that wait for a letter or a receipt: 1 MB. A day's letters are 576.
MAX_UNDER_COVER = 256
RECEIPT_ROUNDS = 4  # rounds from the one in which a letter is due to its receipt; then the message goes anew
LOOP_EVERY = 8  # empty letters: one of so many asks to be listed, so that loss is known before it matters
LOOPS = 40  # letters that are looked back at; with half of them lost by chance, more than half are lost


@dataclass(frozen=True, slots=True)
class PlannedLetter:
    """A letter of a round, before it is sealed."""

    due: int
    content: LetterContent


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

    def letters(self, now: int) -> list[PlannedLetter]:
        """Return the four letters of a round in random order: what waits longest goes first."""
        self._look_back(now)
        planned = [self._letter(now, is_held=False) for _ in range(AT_ONCE_A_ROUND)]
        planned += [self._letter(now, is_held=True) for _ in range(LETTERS_A_ROUND - AT_ONCE_A_ROUND)]
        return sample(self._randomness, planned, len(planned))

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

    def _letter(self, now: int, is_held: bool) -> PlannedLetter:
        due = now + (below(self._randomness, self._rules.held_rounds) + 1 if is_held else 0)
        number = self._randomness(NUMBER)
        for message in self._messages:
            if message.number is None and message.is_held == is_held:
                message.number, message.waits_until = number, due + RECEIPT_ROUNDS
                return PlannedLetter(due, LetterContent(number, LetterKind.DROP, message.body))
        content = empty_content(self._randomness, number)
        if content.kind == LetterKind.LOOP:
            self._loops[number] = due + RECEIPT_ROUNDS
        return PlannedLetter(due, content)

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


def empty_content(randomness: Randomness, number: bytes | None = None) -> LetterContent:
    """Draw what an empty letter holds, a daemon's or a porter's: in one of eight a loop."""
    kind = LetterKind.EMPTY if below(randomness, LOOP_EVERY) else LetterKind.LOOP
    return LetterContent(number or randomness(NUMBER), kind)
