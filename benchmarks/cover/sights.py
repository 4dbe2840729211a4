"""What is measured of a daemon's rounds, at its SOCKS port and between its tor and the network.

At the port each connection is seen apart, and each byte. All that a tor does for its daemon follows from what
passes there, so this is more than an observer outside sees; how a tor paces what it was given shows outside
alone.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cover.apartness import RoundMeasures, Stratum
from benchmarks.cover.socks_watch import Piece
from benchmarks.cover.turns import Doing, Turn
from hushcast_protocol.cover.letters import LETTER

OUTSIDE = -0.5, 6.0  # seconds around a daemon's moment in which its tor's line is looked at

MISSED = "rounds missed"


@dataclass(frozen=True)
class WatchedLine:
    """All that was seen of one daemon."""

    at_port: Sequence[Piece]
    outside: Sequence[Piece]
    """Between its own tor and all others; connections are not told apart."""
    heard: Sequence[float]
    """When an application was shown a new message, in Unix time."""


@dataclass(frozen=True)
class RoundSeen:
    """One round of one daemon."""

    turn: Turn
    measures: RoundMeasures


def rounds_seen(line: WatchedLine, turns: Sequence[Turn], seconds: int) -> list[RoundSeen]:
    """Return what was seen of a daemon's rounds that count.

    One in which it handed no letters in is left out, and so is one of a reader to which no new message came,
    and one of another turn to which one did: what is published is not always there in its round.
    """
    if not any(map(_is_letters, line.at_port)):
        return []
    moment = _moment(line.at_port, seconds)

    def number(at: float) -> int:
        return int((at - moment + seconds / 2) // seconds)

    heard = {number(at) for at in line.heard}
    at_port, outside = _by_round(line.at_port, number), _by_round(line.outside, number)
    return [
        RoundSeen(turn, measures | _outside(outside[one], one * seconds + moment))
        for turn in turns
        for one in turn.counted
        if (one in heard) == (turn.doing == Doing.READING)
        and (measures := _at_port(at_port[one], one * seconds + moment)) is not None
    ]


def rounds_missed(line: WatchedLine, turns: Sequence[Turn], seconds: int) -> list[RoundSeen]:
    """Return all rounds of a daemon that count, and of each alone whether it handed no letters in."""
    if not any(map(_is_letters, line.at_port)):
        return []
    moment = _moment(line.at_port, seconds)
    handed_in = {int((one.at - moment + seconds / 2) // seconds) for one in line.at_port if _is_letters(one)}
    return [
        RoundSeen(turn, {MISSED: float(number not in handed_in)}) for turn in turns for number in turn.counted
    ]


def strata(seen: Mapping[int, Sequence[RoundSeen]], one: Doing, other: Doing) -> list[Stratum]:
    """Return the rounds of two kinds, by daemon and series: those of series that have both.

    Daemons are a pair two and two, by their numbers.
    """
    found = []
    for daemon, rounds in seen.items():
        for series in sorted({each.turn.series for each in rounds}):
            kinds = [
                [each.measures for each in rounds if (each.turn.series, each.turn.doing) == (series, doing)]
                for doing in (one, other)
            ]
            if all(kinds):
                found.append(Stratum(daemon // 2, series, *kinds))
    return found


def over_porter(pieces: Sequence[Piece]) -> list[Piece]:
    """Return what passed on connections over which letters went."""
    porters = {one.connection for one in pieces if _is_letters(one)}
    return [one for one in pieces if one.connection in porters]


def _moment(pieces: Sequence[Piece], seconds: int) -> float:
    """Return when in a round a daemon hands letters in, in seconds after its begin."""
    sent = [piece.at % seconds for piece in pieces if _is_letters(piece)]
    return (statistics.median((at - sent[0] + seconds / 2) % seconds for at in sent) + sent[0]) - seconds / 2


def _is_letters(piece: Piece) -> bool:
    return piece.is_upward and piece.size > 2 * LETTER  # of the four, which are written at once


def _by_round(pieces: Sequence[Piece], number: Callable[[float], int]) -> Mapping[int, list[Piece]]:
    found: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        found[number(piece.at)].append(piece)
    return found


def _at_port(pieces: Sequence[Piece], moment: float) -> dict[str, float] | None:
    letters = next(filter(_is_letters, pieces), None)
    if letters is None:
        return None
    porter = [one for one in pieces if one.connection == letters.connection]
    up = [one for one in porter if one.is_upward]
    down = [one for one in porter if not one.is_upward]
    after = [one.at for one in porter if one.at >= letters.at]
    gaps = [later - earlier for earlier, later in itertools.pairwise(after)]
    return {
        "bytes up": float(sum(one.size for one in up)),
        "bytes down": float(sum(one.size for one in down)),
        "pieces up": float(len(up)),
        "pieces down": float(len(down)),
        "moment in the round": letters.at - moment,
        "last piece up": up[-1].at - moment,
        "first piece down": down[0].at - moment if down else 0.0,
        "last piece down": down[-1].at - moment if down else 0.0,
        "longest gap": max(gaps, default=0.0),
        "connections": float(len({one.connection for one in pieces})),
        "bytes on all of them": float(sum(one.size for one in pieces)),
    }


def _outside(pieces: Sequence[Piece], moment: float) -> dict[str, float]:
    earliest, latest = OUTSIDE
    near = [one for one in pieces if earliest <= one.at - moment <= latest]
    up = [one for one in near if one.is_upward]
    down = [one for one in near if not one.is_upward]
    gaps = [later.at - earlier.at for earlier, later in itertools.pairwise(near)]
    return {
        "outside, bytes up": float(sum(one.size for one in up)),
        "outside, bytes down": float(sum(one.size for one in down)),
        "outside, pieces": float(len(near)),
        "outside, largest piece up": float(max((one.size for one in up), default=0)),
        "outside, its moment": max(up, key=lambda one: one.size).at - moment if up else 0.0,
        "outside, last piece down": down[-1].at - moment if down else 0.0,
        "outside, longest gap": max(gaps, default=0.0),
    }
