"""A porter that loses letters: what it learns by whose messages do not come, until its daemon leaves it.

It sees in which round each letter of its daemons is due, and is in league with somebody who reads the topic.
For each daemon it draws rounds, and loses all that is due in them: an author's messages never come out of
those, anybody else's do. The daemon sends them anew, and has a judge.
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
from hushcast_protocol.cover.letter_rounds import LetterRounds

_RULES = CoverRules(bytes(32), 3600)
_DAY = 86_400
_DROPPED = 2  # rounds from the one in which a letter is due to its list
_NAMED = 0.9  # probability that an author is named with


class PorterLoss(Enum):
    """What a porter does with the rounds that it drew."""

    LOSES = "loses"
    DELAYS = "passes a round too late the letters of"
    RESTARTS = "loses, by two on end,"
    IS_AWAY = "is away in"
    KEEPS_LISTS = "keeps lists back, and loses"


@dataclass(frozen=True, slots=True)
class LosingOutcome:
    """What came of a porter that loses a share of rounds, over some trials."""

    needed: int
    """Messages, each of a round of its own, by which it would name an author."""
    named: float
    """Share of authors that it names before they leave it."""
    heard: float
    """Messages that it has heard when its daemon leaves it, or until it names it; the mean."""
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
    messages_a_day: int,
    trials: int,
    how: PorterLoss = PorterLoss.LOSES,
    seed: int = 1,
    parts: int = 1,
) -> LosingOutcome:
    """Return what a porter finds out of authors who publish so many messages a day, of so many parts each.

    None of them is held.
    """
    needed = messages_needed(users, lost)
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secrets
    played = [_Author(lost, messages_a_day, parts, how, chance).play(needed) for _ in range(trials)]
    named = sum(heard >= needed for heard, _ in played) / trials
    heard, rounds = (sum(one) / trials for one in zip(*played, strict=True))
    return LosingOutcome(needed, named, heard, rounds / _RULES.rounds_in(1))


class _Author:
    """A daemon's own rounds and judge, and the porter's part, the second's and the third's as far as told."""

    def __init__(
        self, lost: float, messages_a_day: int, parts: int, how: PorterLoss, chance: random.Random
    ) -> None:
        self._rounds = LetterRounds(_RULES, chance.randbytes)
        self._lost = lost
        self._every = _RULES.rounds_in(1) / messages_a_day
        self._parts = parts
        self._how = how
        self._chance = chance
        self._drawn: dict[int, bool] = {}
        self._listed: dict[int, set[bytes]] = {}
        self._published = 0

    def play(self, needed: int) -> tuple[int, int]:
        """Return how many rounds had messages that were heard, and how many there were until the end."""
        heard = now = 0
        while heard < needed and not self._rounds.judge.is_alarmed:
            while self._published * self._every <= now:
                for part in range(self._parts):
                    self._rounds.publish(b"%d %d" % (self._published, part), now, is_held=False)
                self._published += 1
            is_away = self._how == PorterLoss.IS_AWAY and self._is_drawn(now)
            if not is_away:
                heard += self._hand_in(now)
            if self._how != PorterLoss.KEEPS_LISTS:
                self._rounds.note_listed(self._listed.pop(now, frozenset()))
            self._rounds.end_round(now, is_handed_in=not is_away, is_line_there=True)
            now += 1
        return heard, now

    def _hand_in(self, now: int) -> bool:
        """Hand in the letters of a round; tell whether a message of it will be heard."""
        is_heard = False
        since = 0 if self._how == PorterLoss.KEEPS_LISTS else None
        for letter in self._rounds.plan(now, since=since):
            is_loop = self._chance.random() < 1 / LOOP_EVERY
            receipt = LetterReceipt(self._chance.randbytes(NUMBER), is_loop)
            self._rounds.note_sent(letter, receipt)
            if self._is_taken(letter.due):
                self._listed.setdefault(letter.due + _DROPPED, set()).add(receipt.number)
                is_heard |= letter.key is not None
        return is_heard

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
