"""A second that counts a porter's letters: whose presence do the counts follow?

All daemons were there before the count begins: a newcomer is hidden among the newcomers of a day only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import Enum

from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_rounds import LetterRounds
from hushcast_protocol.cover.letters import OpenedLetter
from hushcast_protocol.cover.porter_queue import PorterQueue
from hushcast_testnet.cover.best_fit import guessed_first

_RULES = CoverRules(bytes(32), 3600, round_seconds=3600)
_ROUNDS = 720  # thirty days
_AWAY = 0.1  # of days


class PorterFault(Enum):
    """What a porter does otherwise, for the second to find."""

    NONE = "none"
    PASSES_WHAT_CAME = "passes only what came"
    DRAWS_THIRDS = "draws a third for each empty letter it makes"


def presence_guessed(daemons: int, trials: int, fault: PorterFault, seed: int = 1) -> float:
    """Return how many times as often as by chance a second finds which of some daemons a porter serves.

    1 is chance, `daemons` always. It has all their lines, and each round's letters to the daemon's third.
    """
    chance = random.Random(seed)  # noqa: S311 - a simulation
    found = 0.0
    for _ in range(trials):
        lines = [presence_line(chance) for _ in range(daemons)]
        counts = _counts(lines[0], fault, chance)
        fits = [abs(_covariance(line, counts)) / (_covariance(line, line) ** 0.5 or 1.0) for line in lines]
        found += guessed_first(fits)
    return found / trials * daemons


def presence_line(chance: random.Random, is_always: bool = False) -> list[int]:
    """Return in which rounds a daemon is there, 0 or 1: by day, and one day in ten not at all.

    One that is always there lacks a round in ten days.
    """
    if is_always:
        return [int(chance.random() >= _AWAY / 24) for _ in range(_ROUNDS)]
    begin, end = round(chance.gauss(8, 1.5)), round(chance.gauss(23, 1.5))
    line: list[int] = []
    for _ in range(_ROUNDS // 24):
        is_away = chance.random() < _AWAY
        line += [int(not is_away and begin <= hour < end) for hour in range(24)]
    return line


def _counts(line: list[int], fault: PorterFault, chance: random.Random) -> list[int]:
    rounds = LetterRounds(_RULES, chance.randbytes)
    queue = PorterQueue(_RULES, -_RULES.held_rounds, chance.randbytes)
    counts = []
    for now, is_there in enumerate(line):
        if is_there:
            for letter in rounds.plan(now):
                queue.take(OpenedLetter(letter.due, bytes(32), b"came"), now)
        passed = queue.end_round(now, _maker(fault, chance))
        counts.append(sum(one != b"" for one in passed))
    return counts


def _maker(fault: PorterFault, chance: random.Random) -> Callable[[], bytes]:
    def empty() -> bytes:
        if fault == PorterFault.PASSES_WHAT_CAME:
            return b""
        is_elsewhere = fault == PorterFault.DRAWS_THIRDS and chance.randrange(_RULES.width) > 0
        return b"" if is_elsewhere else b"made"

    return empty


def _covariance(one: list[int], other: list[int]) -> float:
    mean, other_mean = sum(one) / len(one), sum(other) / len(other)
    return sum((a - mean) * (b - other_mean) for a, b in zip(one, other, strict=True)) / len(one)
