"""What lines tell of what daemons do: two kinds of rounds beside each other, by each measure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from benchmarks.cover.apartness import Apartness, Stratum, apart, telling
from benchmarks.cover.clients import CoveredClient
from benchmarks.cover.footing import Footing
from benchmarks.cover.sights import RoundSeen, WatchedLine, rounds_missed, rounds_seen, strata
from benchmarks.cover.turns import Doing, Turn
from benchmarks.figures import Figure, at_least, at_most, missing
from hushcast_protocol.base.cover_terms import LEAST_ROUND

BAR = 0.55  # AUC of lines at most, and as far below 0.5
PAIRS_AT_LEAST = 6  # of daemons: what is drawn anew of fewer has an interval of hardly any width
SELDOM = 0.05  # what chance tells as seldom as that is taken for a difference
PAIRS = (
    (Doing.IDLE, Doing.PUBLISHING),
    (Doing.IDLE, Doing.SUBSCRIBING),
    (Doing.PUBLISHING, Doing.SUBSCRIBING),
    (Doing.IDLE, Doing.READING),
)


def compared_lines(
    sound: Sequence[CoveredClient], faulty: Sequence[CoveredClient], footing: Footing, seed: int
) -> Iterator[Figure]:
    """Return how the run went, and what lines tell; of lines nothing where it lost its footing."""
    yield from _of_footing(footing)
    if lost := footing.lost_by():
        yield missing("lines under cover, over Tor", None, "chance", f"lost footing: {'; '.join(lost)}", BAR)
    else:
        yield from _of_kinds(sound, faulty, seed)


def _of_footing(kept: Footing) -> Iterator[Figure]:
    yield at_most("rounds missed", kept.missed, "all", max(1, kept.rounds), None)
    yield at_most(
        "messages for readers that did not come",
        kept.published - kept.heard,
        "all",
        max(1, kept.published),
        None,
    )
    yield at_most("ms by which one look of twenty was late", kept.late * 1e3, "the fault", 30.0, None)


def _of_kinds(sound: Sequence[CoveredClient], faulty: Sequence[CoveredClient], seed: int) -> Iterator[Figure]:
    lines, late = _seen(sound, rounds_seen), _seen(faulty, rounds_seen)
    missed = _seen(sound, rounds_missed)
    for one, other in PAIRS:
        name = f"{one} and {other}"
        yield from _most(name, strata(lines, one, other), seed)
        for compared in (strata(lines, one, other), strata(missed, one, other)):
            yield from _each(name, compared, seed)
        if one == Doing.IDLE:
            yield _control(f"{name}, 30 ms later", strata(late, one, other), "moment in the round", seed)
    longer = [
        replace(each, other=[_longer(round_) for round_ in each.other])
        for each in strata(lines, Doing.IDLE, Doing.PUBLISHING)
    ]
    yield _control("idle and publishing, a byte longer", longer, "bytes up", seed)


def _seen(
    clients: Sequence[CoveredClient], look: Callable[[WatchedLine, Sequence[Turn], int], Sequence[RoundSeen]]
) -> Mapping[int, Sequence[RoundSeen]]:
    return {number: look(client.line, client.turns, LEAST_ROUND) for number, client in enumerate(clients)}


def _longer(measures: Mapping[str, float]) -> Mapping[str, float]:
    return {**measures, "bytes up": measures["bytes up"] + 1}


def _most(name: str, compared: Sequence[Stratum], seed: int) -> Iterator[Figure]:
    if not compared:
        yield missing(f"{name}: AUC", None, "chance", "no series had both", BAR)
        return
    counts = sum(len(each.one) for each in compared), sum(len(each.other) for each in compared)
    most = telling(compared, random.Random(seed))  # noqa: S311 - draws of a statistic
    text = f"{name}, of {counts[0]} and {counts[1]} rounds: what tells most, {most.measure}, is chance in"
    yield at_least(f"{text} a share of: at least times", most.by_chance, "one of twenty", SELDOM, 1.0)


def _each(name: str, compared: Sequence[Stratum], seed: int) -> Iterator[Figure]:
    found_by = apart(compared, random.Random(seed)) if compared else {}  # noqa: S311 - draws of a statistic
    is_enough = len({each.pair for each in compared}) >= PAIRS_AT_LEAST
    for measure, found in found_by.items():
        yield _judged(f"{name}, {measure}: AUC, {found.low:.3f} to {found.high:.3f}", found, is_enough)


def _judged(text: str, found: Apartness, is_enough: bool) -> Figure:
    """Say what a run shows: lines are alike where the whole interval is within the bar, apart where none is.

    Where the bar is within the interval there were too few rounds to say; so there are of few daemons.
    """
    figure = at_most(text, found.area, "chance", 0.5, 2 * BAR)
    is_alike = found.low >= 1 - BAR and found.high <= BAR
    return replace(figure, met=is_alike if is_enough and (is_alike or _is_apart(found)) else None)


def _control(name: str, compared: Sequence[Stratum], measure: str, seed: int) -> Figure:
    """Say whether a fault is found."""
    if not compared:
        return missing(f"control, {name}: AUC", None, "the bar", "no series had both", 1.0)
    found = apart(compared, random.Random(seed))[measure]  # noqa: S311 - draws of a statistic
    text = f"control, {name}, {measure}: AUC, {found.low:.3f} to {found.high:.3f}: found, beyond the bar"
    return replace(at_least(text, found.area, "the bar", BAR, 1.0), met=_is_apart(found))


def _is_apart(found: Apartness) -> bool:
    return found.low > BAR or found.high < 1 - BAR
