"""A porter that loses letters: what it learns by whose messages do not come, until its daemon leaves it.

It sees in which round each letter of its daemons is due, and is in league with somebody who reads the topic.
For each daemon it draws rounds, and loses all that is due in them: an author's messages never come out of
those, anybody else's do. The daemon sends them anew, and has a judge. A relay that gets a reader's letters is
such a reader of a topic as well.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from enum import Enum

from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.cover.cover_chain import CoverChain, CoverLoss
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_batch import LetterBatch
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_rounds import MAX_UNDER_COVER, LetterRounds, PlannedLetter
from hushcast_protocol.cover.topic_rounds import TOPIC_EVERY

_RULES = CoverRules(bytes(32), 3600)
_DAY = 86_400
_LISTED = 3  # rounds from the one in which a letter is due to that in which its daemon has the list
_NAMED = 0.9  # probability that an author is named with


class PorterLoss(Enum):
    """What a porter does with the rounds that it drew."""

    LOSES = "loses"
    DELAYS = "passes a round too late the letters of"
    RESTARTS = "loses, by two on end,"
    IS_AWAY = "is away in"
    KEEPS_LISTS = "keeps lists back, and loses"


@dataclass(frozen=True, slots=True)
class AuthorHabit:
    """What an author publishes on one topic, at once unless it is held."""

    a_day: int
    """Messages, at times evenly apart."""
    parts: int = 1
    """Letters of each."""
    is_held: bool = False
    is_errand: bool = False
    """Whether they are a reader's, who has relays told of its tree: the judge counts them otherwise."""
    seen: float = 1.0
    """Share of letters of which somebody in league hears that they came."""


@dataclass(frozen=True, slots=True)
class LosingOutcome:
    """What came of a porter that loses a share of rounds, over some trials."""

    needed: int
    """Messages, each of a round of its own, by which it would name an author."""
    named: float
    """Share of authors that it names before they leave it, or by held letters that it still has then."""
    named_waiting: float
    """The same of a porter that knows, too, in which rounds a message waits to go at once."""
    heard: float
    """Rounds with messages that it has heard when its daemon leaves it, or until it names it; the mean."""
    days: float
    """Days until then; the mean."""


def messages_needed(users: int, lost: float) -> int:
    """Return by how many messages a porter that loses a share of rounds names one of `users`.

    Each that is heard speaks for the author by 1 against the share of rounds that is not lost; several of one
    round speak once.
    """
    return math.ceil(math.log((users - 1) * _NAMED / (1 - _NAMED)) / -math.log(1 - lost))


def losing_outcome(
    users: int,
    lost: float,
    habit: AuthorHabit,
    trials: int,
    how: PorterLoss = PorterLoss.LOSES,
    seed: int = 1,
) -> LosingOutcome:
    """Return what a porter finds out of authors with a habit."""
    needed = messages_needed(users, lost)
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secrets
    played = [_Author(lost, habit, how, chance).play(needed) for _ in range(trials)]
    named, waiting, heard, rounds = (sum(one) / trials for one in zip(*played, strict=True))
    return LosingOutcome(needed, named, waiting, heard, rounds / _RULES.rounds_in(1))


class _Author:
    """A daemon's own rounds and judge, and the porter's part, the second's and the third's as far as told."""

    def __init__(self, lost: float, habit: AuthorHabit, how: PorterLoss, chance: random.Random) -> None:
        self._rounds = LetterRounds(_RULES, chance.randbytes)
        self._lost = lost
        self._habit = habit
        self._every = _RULES.rounds_in(1) / habit.a_day
        self._how = how
        self._chance = chance
        self._drawn: dict[int, bool] = {}
        self._listed: dict[int, set[bytes]] = {}
        self._published = 0
        self._heard: set[int] = set()

    def play(self, needed: int) -> tuple[bool, bool, int, int]:
        """Return whether it is named, or is by who knows when one waits, rounds heard, rounds played."""
        now, told, is_named, is_named_waiting = 0, 0.0, False, False
        while not (is_named or self._rounds.judge.is_alarmed):
            self._publish(now)
            waits = any(one.number is None and not one.is_held for one in self._rounds.messages)
            is_away = self._how == PorterLoss.IS_AWAY and self._is_drawn(now)
            if not is_away:
                self._hand_in(now)
            told += self._told(now, waits)
            is_named_waiting |= told >= needed * -math.log(1 - self._lost)
            is_named = sum(due <= now for due in self._heard) >= needed
            if self._how != PorterLoss.KEEPS_LISTS:
                self._rounds.note_listed(self._listed.pop(now, frozenset()))
            self._rounds.end_round(now, is_handed_in=not is_away, is_line_there=True)
            now += 1
        # Letters that it has already come out when they are due, though the daemon has left it.
        return len(self._heard) >= needed, is_named or is_named_waiting, len(self._heard), now

    def _publish(self, now: int) -> None:
        while self._published * self._every <= now:
            room = MAX_UNDER_COVER - len(self._rounds.messages)
            for part in range(min(room, self._habit.parts)):
                key = b"%d %d" % (self._published, part)
                self._rounds.publish(key, now, self._habit.is_held, is_errand=self._habit.is_errand)
            self._published += 1

    def _hand_in(self, now: int) -> None:
        """Hand in the letters of a round, and note in which rounds messages will be heard."""
        since = 0 if self._how == PorterLoss.KEEPS_LISTS else None
        for letter in self._rounds.plan(now, since=since):
            is_loop = self._chance.random() < 1 / LOOP_EVERY
            receipt = LetterReceipt(self._chance.randbytes(NUMBER), is_loop)
            self._rounds.note_sent(letter, receipt)
            if self._is_taken(letter.due):
                self._listed.setdefault(letter.due + _LISTED, set()).add(receipt.number)
                self._hear(letter)

    def _hear(self, letter: PlannedLetter) -> None:
        if letter.key is not None and (self._habit.seen == 1 or self._chance.random() < self._habit.seen):
            self._heard.add(letter.due)

    def _told(self, now: int, waits: bool) -> float:
        """Return what a round says for the author, in nats, to who knows whether a message waits in it.

        Against others, who would have lost it with the same share: one that is silent may have been lost.
        """
        goes = 1 / TOPIC_EVERY if waits else 0.0
        if now in self._heard:
            return -math.log(1 - self._lost)
        silent = math.log(1 - goes * (1 - self._lost))
        return -silent if self._is_drawn(now) else math.log(1 - goes) - silent

    def _is_drawn(self, due: int) -> bool:
        place = due // 2 if self._how == PorterLoss.RESTARTS else due
        if place not in self._drawn:
            self._drawn[place] = self._chance.random() < self._lost
        return self._drawn[place]

    def _is_taken(self, due: int) -> bool:
        """Tell whether a second takes a letter that is due in a round."""
        if not self._is_drawn(due):
            return True
        if self._how != PorterLoss.DELAYS:
            return False
        try:
            LetterBatch[None](0).check_due(due, due + 1)
        except Refusal:
            return False
        return True


def pairs_drawn(seed: int = 1) -> int:
    """Return how many pairs a daemon draws in a year while its first porter loses all letters."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secrets
    relays = [number.to_bytes(32, "big") for number in range(1, 101)]
    lists = CoverLists.drawn(_RULES, chance.randbytes(32), relays)
    chain = first = CoverChain.drawn(relays, lists, 0, 0.0, chance.randbytes)
    pairs = 1
    for day in range(365):
        now, quarter = float(day * _DAY), day // QUARTER
        loss = CoverLoss.LETTERS if chain.porter == first.porter else CoverLoss.NOTHING
        before = chain
        chain = chain.with_lists(lists, quarter, now, loss, chance.randbytes)
        chain = chain.with_porter(relays, None, now, loss, chance.randbytes)
        pairs += chain.pair_since != before.pair_since and before.porter == first.porter
    return pairs
