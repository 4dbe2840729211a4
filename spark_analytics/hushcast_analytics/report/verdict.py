"""The verdict: what may be said from the trials that there were; it decides, and needs no Spark.

An attack is held against chance, the `bound` of its trials: what a guess achieves. Trials that exclude
neither chance nor twice chance decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from hushcast_analytics.report.phrases import GOALS, TARGETS, colluding, counted, percent, times
from hushcast_protocol.base.intervals import wilson

Row = dict[str, Any]

CERTAIN = 1 - 1e-9  # a bound that high: there is one candidate, or all are right
LIMIT = 2.0  # times chance: what trials have to exclude before anybody counts as hidden
LUCK = 0.025  # how likely chance may be taken for a leak, in all comparisons of a profile together
MOST_TRIALS = 10_000_000  # beyond that nobody would ask for more
NOBODY = "There was nobody to find: no honest participant published or subscribed."


class AttackStanding(Enum):
    """What trials say of an attack; the value is what it means for those who would be hidden."""

    LEAKS = "not hidden"
    OPEN = "not decided"
    HOLDS = "hidden"
    CANNOT_FAIL = "not tested"


@dataclass(frozen=True)
class TrialNeed:
    """What a network has to have for enough trials."""

    topics: int = 0
    publications: int = 0


@dataclass(frozen=True)
class GoalVerdict:
    """What is said of one goal under one profile, and what would decide it where this does not."""

    profile: str
    goal: str
    standing: AttackStanding
    text: str
    need: TrialNeed | None = None

    def __str__(self) -> str:
        """Return all in one line."""
        return f"{self.profile.capitalize()}, {GOALS[self.goal]}: {self.standing.value}. {self.text}"


def goal_of(row: Row) -> str:
    """Return what an attack takes from people, one of `GOALS`; linking topics names nobody."""
    return "link" if row.get("subject") == "link" else str(row["target"])


def limit(chance: float) -> float:
    """Return the accuracy that trials have to exclude: twice chance, or half-way from it to certainty."""
    return min(LIMIT * chance, (1 + chance) / 2)


def standing(row: Row, comparisons: int = 1) -> AttackStanding:
    """Judge an attack's trials. Of many `comparisons` some exceed chance by chance: each has to do more."""
    chance = float(row["bound"])
    if chance >= CERTAIN:
        return AttackStanding.CANNOT_FAIL
    share = float(row["accuracy"])
    if row["accuracy_low"] > chance and _exceeds(share, _independent(row), chance, comparisons):
        return AttackStanding.LEAKS
    if row.get("targets") == 1:
        return AttackStanding.OPEN  # what holds for one need not hold for others
    return AttackStanding.HOLDS if row["accuracy_high"] <= limit(chance) else AttackStanding.OPEN


def _independent(row: Row) -> float:
    """Return how many independent trials an attack's are worth."""
    return float(row["effective"] if "effective" in row else row["trials"])


def _exceeds(share: float, trials: float, chance: float, comparisons: int) -> bool:
    """Tell whether chance would so rarely give such a share or more, by Chernoff's bound (1952).

    Wilson's interval promises too much where trials are few.
    """
    if share <= chance:
        return False
    distance = share * math.log(share / chance)
    if share < 1:
        distance += (1 - share) * math.log((1 - share) / (1 - chance))
    return trials * distance > math.log(comparisons / LUCK)


def trials_needed(share: float, chance: float, comparisons: int = 1) -> int:
    """Return how many independent trials exclude chance, or `limit`, if a share of them is right."""

    def decides(trials: int) -> bool:
        _, high = wilson(share, trials)
        return high <= limit(chance) or _exceeds(share, trials, chance, comparisons)

    few, many = 0, 1
    while not decides(many) and many < MOST_TRIALS:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if decides(middle) else (middle, many)
    return min(many, MOST_TRIALS)


def verdicts(rows: Sequence[Row]) -> list[GoalVerdict]:
    """Return what is said of each profile and goal."""
    found = []
    for profile in sorted(dict.fromkeys(row["profile"] for row in rows), reverse=True):  # paper first
        ours = [row for row in rows if row["profile"] == profile]
        for goal in GOALS:
            if these := [row for row in ours if goal_of(row) == goal]:
                found.append(_verdict(profile, goal, these, len(ours)))
    return found


def _verdict(profile: str, goal: str, rows: list[Row], comparisons: int) -> GoalVerdict:
    by: dict[AttackStanding, list[Row]] = {each: [] for each in AttackStanding}
    for row in rows:
        by[standing(row, comparisons)].append(row)
    if leaks := by[AttackStanding.LEAKS]:
        best = max(leaks, key=lambda row: (row["accuracy_low"], row["accuracy"]))
        return GoalVerdict(profile, goal, AttackStanding.LEAKS, _leaks(best))
    if still := by[AttackStanding.OPEN]:
        if alone := [row for row in still if row.get("targets") == 1]:
            need = need_of(alone[0], max(alone[0]["trials"], trials_needed(*_chance(alone[0]), comparisons)))
            return GoalVerdict(profile, goal, AttackStanding.OPEN, _open_of_one(alone[0]), need)
        widest = max(still, key=lambda row: (_more(row, comparisons), row["accuracy_high"]))
        more = _more(widest, comparisons)
        need = need_of(widest, more + widest["trials"])
        return GoalVerdict(profile, goal, AttackStanding.OPEN, _open(widest, more), need)
    if holds := by[AttackStanding.HOLDS]:
        best = max(holds, key=lambda row: row["accuracy_high"] / row["bound"])
        return GoalVerdict(profile, goal, AttackStanding.HOLDS, _holds(best))
    need = need_of(rows[0], trials_needed(0.5, 0.5))
    return GoalVerdict(profile, goal, AttackStanding.CANNOT_FAIL, cannot_fail(rows[0]), need)


def cannot_fail(row: Row) -> str:
    """Say why every answer was right."""
    number = row.get("candidates")
    if number is not None and number > 1:
        return f"Each of the {number:,.0f} candidates was right, so that no attack could fail."
    return "There was one candidate only, so that no attack could fail."


def _chance(row: Row) -> tuple[float, float]:
    """Return an accuracy of chance, beside chance."""
    return float(row["bound"]), float(row["bound"])


def _about(row: Row) -> str:
    """Say of how many different ones the trials are."""
    number = row.get("targets")
    return "" if number is None else f" about {counted(number, TARGETS[goal_of(row)])}"


def _more(row: Row, comparisons: int) -> int:
    """Return about how many more trials decide, of the worth of those that there are."""
    chance, have = float(row["bound"]), _independent(row)
    # As if it were no better than chance; after so many trials, as if it were what was measured.
    need = trials_needed(chance, chance, comparisons)
    if need <= have:
        need = trials_needed(float(row["accuracy"]), chance, comparisons)
    return max(1, math.ceil((need - have) * int(row["trials"]) / have))


def _leaks(row: Row) -> str:
    return (
        f"Where {colluding(row)} collude, {row['attack']} is right in {percent(row['accuracy'])} of "
        f"{counted(row['trials'], 'trial')}{_about(row)} ({percent(row['accuracy_low'])} to "
        f"{percent(row['accuracy_high'])}). Chance is {percent(row['bound'])}: "
        f"{times(row['accuracy'] / row['bound'])} as often."
    )


def _open(row: Row, more: int) -> str:
    return (
        f"{counted(row['trials'], 'trial')} of {row['attack']}{_about(row)}, where {colluding(row)} collude, "
        f"leave all from {percent(row['accuracy_low'])} to {percent(row['accuracy_high'])} possible. Chance "
        f"is {percent(row['bound'])}. About {counted(more, 'more trial')} would tell it from "
        f"{percent(limit(row['bound']))}."
    )


def _open_of_one(row: Row) -> str:
    return (
        f"{counted(row['trials'], 'trial')} of {row['attack']}, where {colluding(row)} collude, are about "
        f"one {TARGETS[goal_of(row)]} alone: what holds for one need not hold for others."
    )


def _holds(row: Row) -> str:
    return (
        f"No attack did better than chance, {percent(row['bound'])}. The strongest to fit the "
        f"{counted(row['trials'], 'trial')} of {row['attack']}{_about(row)}, where {colluding(row)} collude, "
        f"is right in {percent(row['accuracy_high'])}: {times(row['accuracy_high'] / row['bound'])} chance "
        "at most."
    )


def need_of(row: Row, trials: int) -> TrialNeed:
    """Return what makes so many trials of an attack's kind, where topics have one subscriber each."""
    honest = trials / (1 - row["colluding"])
    subject = str(row["subject"] if "subject" in row else row["target"])
    # Subscribers are drawn: of clients with two topics on average, one in seven has none.
    topics = {"message": 20.0, "publisher": 20.0, "participant": 2.5 * honest, "subscription": 2.5 * honest}
    wanted = math.ceil(max(10, topics.get(subject, 1.25 * honest)))
    return TrialNeed(wanted, max(3 * wanted, math.ceil(honest) if subject in ("message", "publisher") else 0))


def commands(found: Iterable[GoalVerdict], relays: int) -> list[str]:
    """Return a command for each profile that makes a network of so many relays in which all is decided."""
    needs: dict[str, list[TrialNeed]] = {}
    for each in found:
        if each.need is not None:
            needs.setdefault(each.profile, []).append(each.need)
    return [
        f"hushcast lab traces generate --nodes {relays} --subscribers 1 --authors 1"
        f" --topics {max(need.topics for need in each)}"
        f" --publications {max(need.publications for need in each)}"
        f" --profile {profile} --run {profile} --out /tmp/more"
        for profile, each in needs.items()
    ]


def said(found: Iterable[GoalVerdict]) -> list[str]:
    """Return verdicts as lines; one that says so if there is none."""
    return [str(verdict) for verdict in found] or [NOBODY]
