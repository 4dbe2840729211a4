"""A porter that loses letters: what it learns by whose messages do not come, until its daemon leaves it.

It sees in which round each letter of its daemons is due, and is in league with somebody who reads the topic.
For each daemon it draws rounds, and loses all that is due in them: an author's messages never come out of
those, anybody else's do. Thirds let go together what came in several rounds, so it weighs how many of these a
daemon did not lose (`lost_rounds.py`). The daemon sends anew what was lost, and has a judge. A relay that
gets a reader's letters is such a reader of a topic as well.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.cover.cover_chain import CoverChain, CoverLoss
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import AT_ONCE_A_ROUND, RECEIPT_ROUNDS, RELEASE_ROUNDS, CoverRules
from hushcast_protocol.cover.letter_batch import LetterBatch
from hushcast_protocol.cover.letter_contents import LOOP_EVERY, NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_rounds import MAX_UNDER_COVER, LetterRounds, PlannedLetter
from hushcast_protocol.cover.topic_rounds import TOPIC_EVERY
from hushcast_testnet.cover.lost_rounds import LostRounds

_RULES = CoverRules(bytes(32), 3600)
_DAY = 86_400
_LONGEST = 60  # days that a porter has at the most
_LISTED = 3  # rounds from the one in which a letter is due to that in which its daemon has the list
_NAMED = 0.9  # probability that an author is named with


class PorterLoss(Enum):
    """What a porter does with the rounds that it drew."""

    LOSES = "loses"
    DELAYS = "passes a round too late the letters of"
    RESTARTS = "loses, by two on end,"
    HALVES = "loses, by three on end,"
    RELEASES = "loses, by six on end,"
    IS_AWAY = "is away in"
    KEEPS_LISTS = "keeps lists back, and loses"


_ON_END = {PorterLoss.RESTARTS: 2, PorterLoss.HALVES: 3, PorterLoss.RELEASES: 6}


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
    """Messages, each of a round that it knows, by which it would name an author."""
    named: float
    """Share of authors that it names in 60 days before they leave it, or by held letters that it has then."""
    named_waiting: float
    """The same of a porter that knows, too, in which rounds a message waits to go at once."""
    heard: float
    """Releases with messages that it has heard when its daemon leaves it, or until it names it; the mean."""
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
    rules: CoverRules = _RULES,
) -> LosingOutcome:
    """Return what a porter finds out of authors with a habit.

    For a control `rules` are `dropping_at_once()`.
    """
    needed = messages_needed(users, lost)
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secrets
    played = [_Author(lost, habit, how, chance, rules).play(needed) for _ in range(trials)]
    named, waiting, heard, rounds = (sum(one) / trials for one in zip(*played, strict=True))
    return LosingOutcome(needed, named, waiting, heard, rounds / rules.rounds_in(1))


def dropping_at_once() -> CoverRules:
    """Return rules by which thirds drop what comes in a round at its end, as they did at first."""
    return _AtOnce(_RULES.network, _RULES.epoch_seconds)


class _AtOnce(CoverRules):
    def released_in(self, due: int) -> int:
        return due

    def listed_in(self, due: int) -> int:
        return due

    @property
    def receipt_rounds(self) -> int:
        return RECEIPT_ROUNDS


class _Author:
    """A daemon's own rounds and judge, and the porter's part, the second's and the third's as far as told."""

    def __init__(
        self, lost: float, habit: AuthorHabit, how: PorterLoss, chance: random.Random, rules: CoverRules
    ) -> None:
        self._rules = rules
        self._rounds = LetterRounds(rules, chance.randbytes)
        self._lost = lost
        self._habit = habit
        self._every = self._rules.rounds_in(1) / habit.a_day
        self._how = how
        self._chance = chance
        self._drawn: dict[int, bool] = {}
        self._listed: dict[int, set[bytes]] = {}
        self._published = 0
        self._heard: dict[int, list[int]] = {}
        """Of each release, the rounds in which letters passed that a message of it came in."""
        self._waits: set[bytes] = set()
        """The keys of messages that wait, as far as who knows them sees, in the rounds until a release."""
        self._waited_from: int | None = None  # the first of these
        self._pattern = LostRounds(lost, _ON_END.get(how, 1))

    def play(self, needed: int) -> tuple[bool, bool, int, int]:
        """Return whether it is named, or is by who knows when one waits, releases heard, rounds played."""
        enough = needed * -math.log(1 - self._lost)  # nats
        now, heard, told, is_named, is_named_waiting = 0, 0.0, 0.0, False, False
        while not (is_named or self._is_over(now)):
            self._publish(now)
            self._wait(now)
            is_away = self._how == PorterLoss.IS_AWAY and self._is_drawn(now)
            if not is_away:
                self._hand_in(now)
            if self._rules.released_in(now) == now:
                heard += self._heard_says(now)
                told += 0.0 if self._rounds.judge.is_alarmed else self._told(now)
                is_named |= heard >= enough
                is_named_waiting |= told >= enough
            if self._how != PorterLoss.KEEPS_LISTS:
                self._rounds.note_listed(self._listed.pop(now, frozenset()))
            self._rounds.end_round(now, is_handed_in=not is_away, is_line_there=True)
            now += 1
        releases = sum(1 for release in self._heard if release < now)
        return is_named, is_named or is_named_waiting, releases, now

    def _is_over(self, now: int) -> bool:
        """Tell whether its time is, or it was left and all came out that it has: held letters do."""
        is_left = self._rounds.judge.is_alarmed and all(release < now for release in self._heard)
        return is_left or now >= self._rules.rounds_in(_LONGEST)

    def _publish(self, now: int) -> None:
        while self._published * self._every <= now:
            room = MAX_UNDER_COVER - len(self._rounds.messages)
            for part in range(min(room, self._habit.parts)):
                key = b"%d %d" % (self._published, part)
                self._rounds.publish(key, now, self._habit.is_held, is_errand=self._habit.is_errand)
            self._published += 1

    def _wait(self, now: int) -> None:
        waiting = {one.key for one in self._rounds.messages if one.number is None and not one.is_held}
        self._waits |= waiting
        if waiting and self._waited_from is None:
            self._waited_from = now

    def _hand_in(self, now: int) -> None:
        """Hand in the letters of a round, and note in which rounds messages pass that will be heard."""
        since = 0 if self._how == PorterLoss.KEEPS_LISTS else None
        for letter in self._rounds.plan(now, since=since):
            is_loop = self._chance.random() < 1 / LOOP_EVERY
            receipt = LetterReceipt(self._chance.randbytes(NUMBER), is_loop, self._chance.randbytes(NUMBER))
            self._rounds.note_sent(letter, receipt)
            if self._is_taken(letter.due):
                released = self._rules.released_in(letter.due)
                self._listed.setdefault(letter.due + _LISTED, set()).add(receipt.number)
                self._listed.setdefault(released + _LISTED, set()).add(receipt.done)
                self._hear(letter)

    def _hear(self, letter: PlannedLetter) -> None:
        if letter.key is not None and (self._habit.seen == 1 or self._chance.random() < self._habit.seen):
            self._heard.setdefault(self._rules.released_in(letter.due), []).append(letter.due)

    def _heard_says(self, release: int) -> float:
        """Return what a release says for the author, in nats, by what came out and nothing else.

        Messages that went at once passed in as many rounds as they fill, held ones each in one of its own,
        and none in one that was lost.
        """
        heard = self._heard.get(release, [])
        if not heard:
            return 0.0
        together = sum(
            self._rules.released_in(one) == release for one in range(release + 1)[-RELEASE_ROUNDS:]
        )
        if self._habit.is_held:
            return self._says(release, lambda kept: kept ** len(heard), together)
        rounds = -(-len(heard) // AT_ONCE_A_ROUND)
        return self._says(release, lambda kept: math.comb(kept, rounds), together)

    def _told(self, release: int) -> float:
        """Return the same to who knows which messages wait, so that silence speaks as well.

        Of rounds that were not lost each is a topic's with the same chance.
        """
        waits, since = len(self._waits), self._waited_from
        self._waits, self._waited_from = set(), None
        if since is None:
            return 0.0
        heard = len(self._heard.get(release, []))
        rounds, is_all = -(-heard // AT_ONCE_A_ROUND), heard >= waits
        share = 1 / TOPIC_EVERY

        def chance(kept: int) -> float:
            among = range(rounds, kept + 1) if is_all else (rounds,)
            return sum(math.comb(kept, one) * share**one * (1 - share) ** (kept - one) for one in among)

        return self._says(release, chance, release - since + 1)

    def _says(self, release: int, chance: Callable[[int], float], last: int) -> float:
        """Weigh the last rounds before a release: those that the author lost against what others would.

        `chance` is that of what came out, by how many of the rounds were not lost.
        """
        rounds = range(release - last + 1, release + 1)
        kept = sum(not self._is_drawn(one) for one in rounds)
        others = sum(share * chance(one) for one, share in self._pattern.kept_of(last))
        own = chance(kept)
        return math.log(own / others) if own > 0 and others > 0 else 0.0

    def _is_drawn(self, due: int) -> bool:
        place = due // _ON_END.get(self._how, 1)
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
