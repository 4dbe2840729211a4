"""Relays that collude, with an observer of all lines: whose letters are a topic's messages?

They are played on lists and chains as daemons draw them. Everybody is the author of a topic. The worst is
taken: a colluding porter knows its daemons' lines, and origins that collude know each author's third.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from statistics import median

from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules

_NAMED = 0.5  # weight of all that an author is named above


@dataclass(frozen=True, slots=True)
class CollusionScene:
    """How large, and how bad."""

    users: int
    relays: int
    width: int
    share: float
    """Of the relays that collude."""
    draws: int
    """Of lists, chains and colluders."""
    seed: int = 1
    is_third_told: bool = False
    """Whether every porter knows the third of its daemons: a control.

    A third in a waybill is known to a porter where the second colludes, which reads it, or the third itself,
    which finds the porter's own letters among those that it gets.
    """
    loses_others: bool = False
    """Whether colluding porters lose all letters but those of one daemon, which is the author.

    Its messages come out nevertheless, so of those whose porter colludes all others are not it.
    """


@dataclass(frozen=True, slots=True)
class CollusionOutcome:
    """What came of all authors of all draws."""

    named: float
    """Share of authors, 0 to 1."""
    candidates: float
    """Median over authors of the effective number of users who may be it."""
    on_author: float
    """Mean of the probability that colluders give the author."""
    on_author_expected: float
    """What they expect of that by their own probabilities; the two agree where those are right."""


class _Draw:
    """Chains of all users and the colluders of one draw."""

    def __init__(self, scene: CollusionScene, chance: random.Random) -> None:
        rules = CoverRules(bytes(32), 3600, width=scene.width)
        relays = [number.to_bytes(32, "big") for number in range(1, scene.relays + 1)]
        self.width = scene.width
        self.is_third_told = scene.is_third_told
        self.loses_others = scene.loses_others
        self.lists = CoverLists.drawn(rules, chance.randbytes(32), relays)
        self.bad = frozenset(chance.sample(relays, round(scene.share * scene.relays)))
        self.chains = [
            CoverChain.drawn(relays, self.lists, 0, 0.0, chance.randbytes) for _ in range(scene.users)
        ]
        known = [one for one in self.chains if one.porter in self.bad]
        self.hidden = len(self.chains) - len(known)
        to_second = [one for one in known if one.second not in self.bad]
        to_third = [one for one in known if one.second in self.bad and one.third not in self.bad]
        self.by_pair = Counter((one.second, one.third) for one in to_second)
        self.blind = sum(one.third not in self.bad for one in to_second)
        self.honest_thirds = len(self.lists.thirds - self.bad)
        self.to_second_by_third = Counter(one.third for one in to_second)
        self.by_third = Counter(one.third for one in to_third)

    def weights(self, author: CoverChain) -> tuple[float, list[tuple[int, float]]]:
        """Return the author's weight, and (how many, weight) of the others."""
        weight, others = self._weights(author)
        return weight, others[:1] if self.loses_others else others

    def _weights(self, author: CoverChain) -> tuple[float, list[tuple[int, float]]]:
        """Return them, of the others first those whose porter is honest."""
        own = author.porter in self.bad
        others: list[tuple[int, float]] = [(self.hidden - (not own), 1.0)]
        if author.third not in self.bad:  # seen from behind up to the third
            if self.is_third_told:
                known = self.by_third[author.third] + self.to_second_by_third[author.third]
                others.append((known - own, float(self.width)))
                return (float(self.width) if own else 1.0), others
            return self._weights_sealed(author, own, others)
        if author.second not in self.bad:  # up to the second
            weight = float(self.width**2)
            others.append((self.by_pair[author.second, author.third] - own, weight))
            return (weight if own else 1.0), others
        return (math.inf if own else 1.0), others

    def _weights_sealed(
        self, author: CoverChain, own: bool, others: list[tuple[int, float]]
    ) -> tuple[float, list[tuple[int, float]]]:
        """Weigh by an honest third whom a porter knows to be one of the honest thirds, or which it is."""
        is_traced, is_blind = own and author.second in self.bad, own and author.second not in self.bad
        blind = self.width / max(self.honest_thirds, 1)
        others.append((self.blind - is_blind, blind))
        others.append((self.by_third[author.third] - is_traced, float(self.width)))
        return (float(self.width) if is_traced else blind if is_blind else 1.0), others


def kept_chains(scene: CollusionScene) -> CollusionOutcome:
    """Play chains as daemons keep them."""
    chance = random.Random(scene.seed)  # noqa: S311 - a simulation, no secrets
    named, sets, given, expected = 0, [], 0.0, 0.0
    for _ in range(scene.draws):
        draw = _Draw(scene, chance)
        for author in draw.chains:
            weight, others = draw.weights(author)
            is_named = math.isinf(weight)
            weights = [(1, 1.0)] if is_named else [(1, weight), *others]
            total = sum(count * each for count, each in weights)
            shares = [(count, each / total) for count, each in weights]
            named += shares[0][1] > _NAMED
            given += shares[0][1]
            expected += sum(count * share**2 for count, share in shares)
            sets.append(_effective(shares))
    return CollusionOutcome(named / len(sets), median(sets), given / len(sets), expected / len(sets))


def fresh_chains(scene: CollusionScene, letters: int) -> float:
    """Return the share of authors named where second and third are drawn for each letter: a control.

    A draw of lists that holds no colluder names nobody, so the mean lies below that of layers drawn anew.
    """
    chance = random.Random(scene.seed)  # noqa: S311 - a simulation, no secrets
    named = 0
    for _ in range(scene.draws):
        draw = _Draw(scene, chance)
        bad = [_share(draw.lists.seconds, draw.bad), _share(draw.lists.thirds, draw.bad)]
        for author in draw.chains:
            is_known = author.porter in draw.bad
            named += is_known and any(chance.random() < bad[0] * bad[1] for _ in range(letters))
    return named / (scene.draws * scene.users)


def plain_messages(users: int, trials: int, a_day: int, seed: int = 1) -> float:
    """Return the median of messages until an author or reader without cover is known by the lines: a control.

    An observer takes whose line had something within five seconds; others' have as many messages a day.
    """
    chance = random.Random(seed)  # noqa: S311 - a simulation
    busy = 1 - math.exp(-a_day / 86_400 * 5)
    needed = []
    for _ in range(trials):
        left, seen = users - 1, 0
        while left or not seen:
            left, seen = sum(chance.random() < busy for _ in range(left)), seen + 1
        needed.append(seen)
    return float(median(needed))


def _effective(shares: list[tuple[int, float]]) -> float:
    return 2 ** -sum(count * share * math.log2(share) for count, share in shares)


def _share(relays: frozenset[RelayId], bad: frozenset[RelayId]) -> float:
    return len(relays & bad) / len(relays)
