"""What is seen of rounds under cover at a daemon's SOCKS port, and what of it tells publishing from not.

Each daemon is idle and publishes in turns, so it is compared with itself: ways through Tor differ more.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.cover.apartness import Apartness, RoundKinds, RoundMeasures, apart_by_best
from benchmarks.cover.socks_watch import Piece
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.cover.letters import LETTER

SETTLED = 12  # rounds of a block that do not count: what waits for a round of its topic has gone by their end
BLOCKS = 4  # of each daemon: it publishes, and does not, in turns; another begins with the other


@dataclass(frozen=True)
class Course:
    """When one daemon publishes."""

    first: int
    """Its first round."""
    begins_busy: bool
    counted: int
    """Rounds of each block that count."""

    def end_of(self, block: int) -> int:
        """Return the round with which the next block begins."""
        return self.first + (block + 1) * (SETTLED + self.counted)

    def is_busy(self, block: int) -> bool:
        """Whether it publishes in a block."""
        return (block % 2 == 0) == self.begins_busy

    def kinds(self) -> Iterator[tuple[int, int, bool]]:
        """Return rounds that count: number, block, and whether it publishes."""
        for block in range(BLOCKS):
            for number in range(self.end_of(block) - self.counted, self.end_of(block)):
                yield number, block, self.is_busy(block)


@dataclass(frozen=True)
class RoundSeen:
    """One round of one daemon."""

    block: int
    is_busy: bool
    measures: RoundMeasures


def rounds_seen(pieces: Sequence[Piece], course: Course, seconds: int) -> list[RoundSeen]:
    """Return what was seen of a daemon's rounds, each beside what is usual for this daemon.

    A round in which it handed no letters in is left out.
    """
    moment = _moment(pieces, seconds)
    by_round: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        by_round[int((piece.at - moment + seconds / 2) // seconds)].append(piece)
    found = [
        RoundSeen(block, is_busy, measures)
        for number, block, is_busy in course.kinds()
        if (measures := _measures(by_round[number], number * seconds + moment)) is not None
    ]
    return [RoundSeen(one.block, one.is_busy, _beside_usual(one.measures, found)) for one in found]


def over_porter(pieces: Sequence[Piece]) -> list[Piece]:
    """Return what passed on connections over which letters went."""
    porters = {one.connection for one in pieces if _is_letters(one)}
    return [one for one in pieces if one.connection in porters]


def split(rounds: Sequence[RoundSeen], blocks: range) -> RoundKinds:
    """Return what was measured of idle rounds and of busy ones in some blocks."""
    idle, busy = (
        [one.measures for one in rounds if one.block in blocks and one.is_busy == is_busy]
        for is_busy in (False, True)
    )
    return idle, busy


def apart(rounds: Sequence[RoundSeen]) -> Apartness:
    """Return how well the best measure of either half of the rounds tells those of the other half apart.

    Raises `Refusal` where a half lacks rounds of a kind: too many were missed.
    """
    halves = [split(rounds, range(BLOCKS // 2)), split(rounds, range(BLOCKS // 2, BLOCKS))]
    if not all(kind for half in halves for kind in half):
        raise Refusal("half of the rounds were missed: the machine, or the network, was too busy")
    found = [apart_by_best(halves[one], halves[1 - one]) for one in (0, 1)]
    error = sum(one.error**2 for one in found) ** 0.5 / 2
    return Apartness(sum(one.area for one in found) / 2, error)


def _moment(pieces: Sequence[Piece], seconds: int) -> float:
    """Return when in a round a daemon hands letters in, in seconds after its begin."""
    sent = [piece.at % seconds for piece in pieces if _is_letters(piece)]
    return (statistics.median((at - sent[0] + seconds / 2) % seconds for at in sent) + sent[0]) - seconds / 2


def _is_letters(piece: Piece) -> bool:
    return piece.is_upward and piece.size > 2 * LETTER  # of the four, which are written at once


def _measures(pieces: Sequence[Piece], moment: float) -> RoundMeasures | None:
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


def _beside_usual(measures: RoundMeasures, rounds: Sequence[RoundSeen]) -> RoundMeasures:
    return {
        name: value - statistics.median(one.measures[name] for one in rounds)
        for name, value in measures.items()
    }
