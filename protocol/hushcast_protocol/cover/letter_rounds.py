"""A daemon's rounds: four letters in each, three at once and one held, with messages in them or not.

First it is planned which letters have which message, then they are sealed, and at the daemon's moment of the
round they go: what takes longer with a message in it is done before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice

from hushcast_protocol.base.crypto.secrets import Randomness, below, sample
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.cover.cover_rules import (
    AT_ONCE_A_ROUND,
    DUE_A_ROUND,
    LETTERS_A_ROUND,
    RECEIPT_ROUNDS,
    CoverRules,
)
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, LetterReceipt
from hushcast_protocol.cover.loss_judge import LossJudge, LossRecord
from hushcast_protocol.cover.topic_rounds import TOPIC_EVERY, TopicRounds

# Messages of one daemon that wait for a letter or a receipt: 1 MB. A day's letters are 576.
MAX_UNDER_COVER = 256


@dataclass(slots=True)
class CoveredMessage:
    """A message under cover, and its letter under way."""

    key: bytes
    """By which its daemon knows it."""
    is_held: bool
    until: int
    """The last round in which it may go anew."""
    last_due: int | None = None
    """The last round in which its letter may be due; `None`: any, as it is sealed for the day of that."""
    number: bytes | None = None
    """By which its letter under way is listed once the message was dropped."""
    waits_until: int = 0
    """The round up to which that, or the last one, may be listed; 0: it never went."""
    came_as: bytes = b""
    """By which that letter is listed as it came; empty once it is. Not on disk."""
    listed_in: int = 0
    """The round by which its third lists that it was done; not on disk."""
    goes_anew: bool = False
    """Whether that letter is not its first; not on disk."""
    topic: str = field(default="", repr=False)
    """Of which it is; not on disk. Those of one topic go at once in rounds of their own."""
    is_errand: bool = False
    """Whether it is an errand: whether it is done depends on a relay that is no part of the chain."""


@dataclass(frozen=True, slots=True)
class PlannedLetter:
    """A letter that is to be sealed: the round in which it is due, and the key of the message in it."""

    due: int
    key: bytes | None


def is_behind(since: int | None, now: int) -> bool:
    """Tell whether lists lag behind by more than a receipt takes."""
    return since is not None and since + RECEIPT_ROUNDS < now


class LetterRounds:
    """What one daemon publishes under cover; it never goes another way."""

    def __init__(self, rules: CoverRules, randomness: Randomness) -> None:
        self._rules = rules
        self._randomness = randomness
        self._topic_rounds = TopicRounds(randomness)
        self._begins = 0
        self._planned = 0
        self._messages: list[CoveredMessage] = []
        self._held_due: Counter[int] = Counter()
        self.judge = LossJudge(rules, LossRecord())
        """Whether the chain loses too much."""
        self._given_up: list[bytes] = []
        self._sent: list[bytes] = []
        """Of the letters of the last round, the numbers that are to be listed."""

    def publish(
        self,
        key: bytes,
        now: int,
        is_held: bool,
        last_due: int | None = None,
        topic: str = "",
        is_errand: bool = False,
    ) -> CoveredMessage:
        """Let a message or an errand go in a letter: at once, in a round of its topic, or held, due in a day.

        It has a day, two if it is held, from its turn among its topic's on. Raises `Refusal` for too many.
        """
        if len(self._messages) >= MAX_UNDER_COVER:
            raise Refusal("too many messages wait for a letter: publish later")
        before = sum(one.topic == topic and not one.is_held for one in self._messages)
        turn = 0 if is_held else before * TOPIC_EVERY // AT_ONCE_A_ROUND
        until = self._until(now, is_held) + turn
        message = CoveredMessage(key, is_held, until, last_due, topic=topic, is_errand=is_errand)
        self._messages.append(message)
        return message

    def begin_at(self, begins: int) -> list[CoveredMessage]:
        """Take notice of the first round whose letters are passed; return messages that have longer now."""
        self._begins = begins
        late = [one for one in self._messages if one.until < begins + self._span(one.is_held)]
        for message in late:
            message.until = begins + self._span(message.is_held)
        return late

    def _until(self, now: int, is_held: bool) -> int:
        """Return the last round in which what is published now may go anew."""
        return max(now, self._begins) + self._span(is_held)

    def _span(self, is_held: bool) -> int:
        return self._rules.held_rounds * (2 if is_held else 1)

    def restore(self, message: CoveredMessage) -> None:
        """Take up a message that waited before a restart."""
        self._messages.append(message)

    def forget(self, key: bytes) -> None:
        """Let a message go no more: it was taken back."""
        self._messages = [one for one in self._messages if one.key != key]

    def judge_by(self, losses: LossRecord) -> None:
        """Go on from what is known of the chain's losses."""
        self.judge = LossJudge(self._rules, losses)

    def begin_anew(self, losses: LossRecord) -> None:
        """Take notice of another chain: what is under way by the one before has its receipt from nobody."""
        self.judge_by(losses)
        for message in self._messages:
            message.number = None
        self._held_due.clear()

    def plan(self, now: int, is_passed: bool = True, since: int | None = None) -> list[PlannedLetter]:
        """Return the four letters of a round in random order: what never went goes first, oldest first.

        Without `is_passed` the porter throws them away, so no message is in any; nor is one where the chain
        loses too much, or lists lag behind: `since` is the first round whose blocks are lacking.
        """
        self._planned = now
        self._look_back(now, now if since is None else since)
        is_used = is_passed and not self.judge.is_alarmed and not is_behind(since, now)
        dues = [(now, False)] * AT_ONCE_A_ROUND
        dues += [(self._held_until(now), True) for _ in range(LETTERS_A_ROUND - AT_ONCE_A_ROUND)]
        planned: list[PlannedLetter] = []
        topics = {one.topic for one in self._messages}
        have = {topic for topic in topics if self._topic_rounds.has(topic, now)}
        for due, is_held in dues:
            fitting = (
                PlannedLetter(due, one.key)
                for one in self._in_turn(is_held)
                if (is_held or one.topic in have)
                and (one.last_due is None or due <= one.last_due)
                and all(one.key != other.key for other in planned)
            )
            empty = PlannedLetter(due, None)
            planned.append(next(fitting, empty) if is_used else empty)
        return sample(self._randomness, planned, len(planned))

    def note_sent(self, letter: PlannedLetter, receipt: LetterReceipt) -> CoveredMessage | None:
        """Take notice that a planned letter was handed in, and what it is listed by; return its message."""
        if letter.key is not None or receipt.is_loop:
            self.judge.note_sent(receipt.number, letter.due)
            self._sent.append(receipt.number)
        for message in self._messages:
            if message.key == letter.key:
                message.goes_anew = message.waits_until > 0
                message.number, message.waits_until = receipt.done, letter.due + self._rules.receipt_rounds
                message.came_as, message.listed_in = receipt.number, self._rules.listed_in(letter.due)
                return message
        return None  # it is empty, or was taken back while its letter was sealed

    def end_round(self, now: int, is_handed_in: bool, is_line_there: bool) -> None:
        """Have a round that is over judged, before the next is planned.

        One in which the daemon's own line may have been away says nothing of the porter.
        """
        if not is_line_there:
            self.judge.forget(self._sent)
        elif is_handed_in:
            self.judge.end_round(now)
        else:
            self._note_missed(now)
        self._sent = []

    def _note_missed(self, now: int) -> None:
        """Count a round that the porter did not have, by its own doing: it is no better than losing it.

        As many loops as there would have been are drawn; whose topic had this round counts it as well.
        """
        drawn = [below(self._randomness, LOOP_EVERY) for _ in range(AT_ONCE_A_ROUND)]
        waiting = self._in_turn(is_held=False)
        if 0 in drawn or any(self._topic_rounds.has(one.topic, now) for one in waiting):
            self.judge.note_missed(now)

    def note_listed(self, numbers: Collection[bytes]) -> list[bytes]:
        """Take a third's list; return the keys of what is done.

        A third that has a message has to drop it, too, and of several errands to have one carried out.
        """
        for message in self._messages:
            if message.number is not None and message.came_as and message.came_as in numbers:
                message.came_as = b""
                if not message.is_errand:
                    self.judge.note_came(message.number, message.listed_in)
                elif not message.goes_anew:  # else it is for who may be away
                    self.judge.note_errand(message.number, message.listed_in)
        done = [one.key for one in self._messages if one.number is not None and one.number in numbers]
        self._messages = [one for one in self._messages if one.key not in done]
        self.judge.note_listed(numbers)
        return done

    def given_up(self) -> list[bytes]:
        """Return once the key of each message that no letter brought there in time: its user is told."""
        told, self._given_up = self._given_up, []
        return told

    @property
    def messages(self) -> list[CoveredMessage]:
        """Those without a receipt, oldest first."""
        return list(self._messages)

    def rounds_until(self, keys: Collection[bytes]) -> int:
        """Return in how many rounds the last letter with one of these messages is handed in.

        Where each goes in its turn; 0: none waits for a letter. At once and held are counted apart.
        """
        held = self._in_turn(is_held=True)
        rounds = max((turn + 1 for turn, one in enumerate(held) if one.key in keys), default=0)
        return max(rounds, self._rounds_at_once(keys))

    def rounds_for(self, topic: str, letters: int, behind: int) -> int:
        """Return in how many rounds so many letters of a topic are handed in, none of them before `behind`.

        They go three to a round of the topic; other topics' letters of the same rounds are left out.
        """
        first = max(self._planned + 1, self._begins)
        while letters > 0:
            letters -= AT_ONCE_A_ROUND * self._topic_rounds.has(topic, first + behind)
            behind += 1
        return behind

    def _rounds_at_once(self, keys: Collection[bytes]) -> int:
        first, rounds = max(self._planned + 1, self._begins), 0
        waiting = self._in_turn(is_held=False)
        while any(one.key in keys for one in waiting):
            # Topics behind the three that go are not looked at: 255 of them take 20 ms.
            has = cache(partial(self._topic_rounds.has, number=first + rounds))
            gone = set(islice((one.key for one in waiting if has(one.topic)), AT_ONCE_A_ROUND))
            waiting = [one for one in waiting if one.key not in gone]
            rounds += 1
        return rounds

    def _in_turn(self, is_held: bool) -> list[CoveredMessage]:
        """Return those that wait for a letter in the order in which they get one.

        What goes anew is behind what never went, and among its like behind what was under way before it: if
        lists are late, the oldest would else have all letters again and again. Errands are behind messages.
        """
        waiting = [one for one in self._messages if one.number is None and one.is_held == is_held]
        return sorted(waiting, key=lambda one: (one.is_errand, one.waits_until))

    def _held_until(self, now: int) -> int:
        """Draw a round within a day in which not too many held letters are due."""
        self._held_due = Counter({due: count for due, count in self._held_due.items() if due > now})
        day = range(now + 1, now + self._rules.held_rounds + 1)
        free = [due for due in day if self._held_due[due] < DUE_A_ROUND]
        due = free[below(self._randomness, len(free))]
        self._held_due[due] += 1
        return due

    def _look_back(self, now: int, unread: int) -> None:
        """Let messages whose receipt did not come go anew, or give them up.

        One that may be on a list of a round from `unread` on waits for that: if all went anew that came out
        while their daemon was away, whoever sees a message dropped twice would see when it was back.
        """
        for message in self._messages:
            is_read = message.waits_until < unread or message.until < now
            if message.number is not None and message.waits_until < now and is_read:
                message.number = None
        gone = [
            one
            for one in self._messages
            if one.number is None and (one.until < now or (one.last_due is not None and one.last_due < now))
        ]
        self._given_up += [one.key for one in gone]
        self._messages = [one for one in self._messages if one not in gone]
