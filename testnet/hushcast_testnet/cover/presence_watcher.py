"""Who watches who is there: whose lines were up when letters with a topic's messages were handed in?

No relay colludes. A watcher has all lines, and hears when messages of a topic come out. The author's part is
played by a daemon's own presence, rounds and hold, by its porter's queue and its third's release.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from hushcast_protocol.cover.cover_presence import PRESENCE_DAYS, CoverPresence
from hushcast_protocol.cover.cover_rules import AT_ONCE_A_ROUND, RELEASE_ROUNDS, CoverRules
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_protocol.cover.letter_contents import NUMBER, LetterReceipt
from hushcast_protocol.cover.letter_release import HeldBody, LetterRelease
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_protocol.cover.letters import OpenedLetter
from hushcast_protocol.cover.porter_queue import PorterQueue
from hushcast_testnet.cover.chance_lines import LineKind, PresenceMix, drawn_line

_RULES = CoverRules(bytes(32), 3600)
_SECOND = bytes(32)
_BEGINS = PRESENCE_DAYS  # the day on which a topic's first message is published: presence is known by then
_A_DAY = 4  # messages
_LISTED = 3  # rounds from the one in which a letter is due to that in which its daemon has the list
_SET_AFTER = 20  # messages
_NAMED = 0.5  # weight of all that an author is named above


@dataclass(frozen=True, slots=True)
class PresenceScene:
    """Who has cover on, and who of them is the author."""

    users: int
    author: LineKind
    hold: HoldRule = HoldRule.AUTO
    mix: PresenceMix = field(default_factory=PresenceMix)


@dataclass(frozen=True, slots=True)
class PresenceOutcome:
    """What came of some authors."""

    named: Sequence[float]
    """Of each the messages after which it was named, infinite where it was not."""
    candidates: float
    """Median over authors of the effective number of users who may be it, after twenty messages."""

    def named_by(self, messages: int) -> float:
        """Return the share of authors that are named by so many messages."""
        return sum(one <= messages for one in self.named) / len(self.named)


def presence_outcome(
    scene: PresenceScene, messages: int, trials: int, seed: int = 1, rules: CoverRules = _RULES
) -> PresenceOutcome:
    """Return what a watcher finds of authors by so many messages of each."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secrets
    days = _BEGINS + math.ceil(messages / _A_DAY) + 3  # the last are held, or their author is away
    found = [_watched(scene, messages, days, chance, rules) for _ in range(trials)]
    return PresenceOutcome([named for named, _ in found], median(size for _, size in found))


def _watched(
    scene: PresenceScene, messages: int, days: int, chance: random.Random, rules: CoverRules
) -> tuple[float, float]:
    """Return by how many messages one author was named, and how many candidates twenty leave."""
    own = drawn_line(chance, days, scene.author, stays=True)
    others = [drawn_line(chance, days, scene.mix.drawn(chance)) for _ in range(scene.users - 1)]
    watcher = _Watcher([own, *others], rules)
    heard, named, candidates = 0, math.inf, float(scene.users)
    for released, came in sorted(_released(own, days, scene.hold, chance, rules).items()):
        if heard >= messages:
            break
        watcher.hear(released, came)
        heard += sum(came.values())
        shares = watcher.shares(released)
        if named == math.inf and shares[0] > _NAMED:
            named = heard
        if heard - sum(came.values()) < _SET_AFTER:
            candidates = 2 ** -sum(share * math.log2(share) for share in shares if share > 0)
    return named, candidates


class _Watcher:
    """All lines since the topic's first day, and how well what was heard fits each."""

    def __init__(self, lines: Sequence[int], rules: CoverRules) -> None:
        self._rules = rules
        self._begins = rules.rounds_in(_BEGINS)
        self._lines = [
            line >> self._begins << rules.held_rounds for line in lines
        ]  # with a day before, empty
        self._fits = [0.0] * len(lines)
        self._heard = 0  # draws of a round in which a line was up

    def hear(self, released: int, came: dict[bool, int]) -> None:
        """Weigh what came out together: so many messages that were held, and so many that were not."""
        first = released
        while released - first < RELEASE_ROUNDS and self._rules.released_in(first - 1) == released:
            first -= 1
        rounds = released + 1 - first
        at_once = -(-came[False] // AT_ONCE_A_ROUND)
        self._heard += at_once + came[True]
        held = self._rules.held_rounds
        day, both = (1 << held) - 1, (1 << held + rounds) - 1
        for user, line in enumerate(self._lines):
            if self._fits[user] == -math.inf:
                continue
            seen, weight = line >> first - self._begins & both, 1
            if came[True]:  # each was handed in on the day before it was due
                weight *= sum((seen >> due & day).bit_count() for due in range(rounds)) ** came[True]
            if at_once:
                weight *= math.comb((seen >> held).bit_count(), at_once)
            self._fits[user] += math.log(weight) if weight else -math.inf

    def shares(self, released: int) -> list[float]:
        """Return how likely each is the author: whoever was there less fits better."""
        until = (1 << released - self._begins + 1 + self._rules.held_rounds) - 1
        logs = [
            fit - self._heard * math.log((line & until).bit_count()) if fit > -math.inf else fit
            for fit, line in zip(self._fits, self._lines, strict=True)
        ]
        most = max(logs)
        weights = [math.exp(one - most) for one in logs]
        total = sum(weights)
        return [one / total for one in weights]


def _released(
    line: int, days: int, hold: HoldRule, chance: random.Random, rules: CoverRules
) -> dict[int, dict[bool, int]]:
    """Return how many of an author's messages come out in which round, by whether they were held."""
    author = _Author(rules, chance)
    first, last = rules.rounds_in(_BEGINS), rules.rounds_in(days)
    there = [now for now in range(first, last) if line >> now & 1]
    written = Counter(chance.choices(there, k=_A_DAY * (days - _BEGINS)))
    presence = CoverPresence(rules)
    for now in range(last):
        day = now // rules.rounds_in(1)
        if now >= first:
            is_held = written[now] > 0 and hold.is_held(presence.is_always_there(day))
            author.play(now, bool(line >> now & 1), written[now], is_held)
        if line >> now & 1:
            presence.note(day)
    return author.came


class _Author:
    """A daemon's rounds, its porter's queue and its third's release."""

    def __init__(self, rules: CoverRules, chance: random.Random) -> None:
        self._rules = rules
        self._draw = chance.randbytes
        self._rounds = LetterRounds(rules, self._draw)
        start = rules.rounds_in(_BEGINS)
        self._queue = PorterQueue(rules, start - rules.held_rounds, self._draw)
        self._release = LetterRelease(rules)
        self._listed: dict[int, set[bytes]] = defaultdict(set)
        self._since = start
        self._held: dict[bytes, bool] = {}
        self.came: dict[int, dict[bool, int]] = {}
        """Messages that came out for the first time, by round and by whether they were held."""

    def play(self, now: int, is_there: bool, written: int, is_held: bool) -> None:
        """Let a round go by, in which so many messages are published."""
        for _ in range(written):
            key = self._draw(NUMBER)
            self._held[key] = is_held
            self._rounds.publish(key, now, is_held)
        if is_there:
            self._hand_in(now)
        for body in self._queue.end_round(now, bytes):
            if body:
                self._listed[now + _LISTED].add(body[:NUMBER])
                done, key = body[NUMBER : 2 * NUMBER], body[2 * NUMBER :]
                self._release.hold(HeldBody(_SECOND, done, key, now), self._draw)
        for one in self._release.let_go(now, self._draw):
            self._listed[now + _LISTED].add(one.done)
            if one.body in self._held:
                counts = self.came.setdefault(now, {False: 0, True: 0})
                counts[self._held.pop(one.body)] += 1

    def _hand_in(self, now: int) -> None:
        for planned in self._rounds.plan(now, since=self._since):
            receipt = LetterReceipt(self._draw(NUMBER), False, self._draw(NUMBER))
            self._rounds.note_sent(planned, receipt)
            inside = b"" if planned.key is None else receipt.number + receipt.done + planned.key
            self._queue.take(OpenedLetter(planned.due, _SECOND, inside), now)
        for number in range(self._since, now + 1):
            self._rounds.note_listed(self._listed.pop(number, set()))
        self._since = now + 1
