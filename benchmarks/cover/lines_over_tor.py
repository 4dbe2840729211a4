"""Figure: what lines tell of daemons under cover, and what cover costs, over a private Tor, tors 40 ms apart.

Daemons are idle, publish, subscribe and read, in turns; each one's line is watched on both sides of its own
tor. Some have a fault, which has to be found by the same measures. Rounds take 20 s, as short as a network
may have them.

By itself, with other numbers: `python -m benchmarks.cover.lines_over_tor --sound 20 --minutes 25.5`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

from benchmarks.cover.clients import CoverRun, CoverScene, clients_for
from benchmarks.cover.compared_lines import compared_lines
from benchmarks.cover.cover_costs import cover_costs
from benchmarks.figures import Effort, Figure, missing
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime.logs import configure_logs
from hushcast_testnet import testnet
from hushcast_testnet.inventory import FILE
from hushcast_testnet.tor.distance import Distance

DISTANCE = Distance(40)
RELAYS, DIRECTORIES = 15, 3  # three more than cover needs: on a busy machine one is missing now and then
_BEFORE = 4.0  # minutes until the turns begin, about, or somewhat less: they wait for a day
_EPOCHS = range(60, 181)  # seconds of an epoch that a network may have here


@dataclass(frozen=True)
class LinesPlan:
    """How much is measured."""

    sound: int
    """Daemons without a fault; these and the others are pairs, so there are even numbers of both."""
    faulty: int
    minutes: float
    """Of turns: a series in which nobody reads takes seven, one with reading five, and 13 must be before."""
    seed: int = 1


FULL, SHORT = LinesPlan(20, 4, 25.5), LinesPlan(4, 2, 8)


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure once, for half an hour, or with few daemons and without readers for a quarter of one."""
    yield from figures_of(FULL if effort.share == 1 else SHORT)


def figures_of(plan: LinesPlan) -> Iterator[Figure]:
    """Measure once by a plan."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        directory = Path(place) / "net"
        why: BaseException | None = None
        found: list[Figure] = []
        try:
            found = list(table(_measured(directory, plan), plan))
        except* (HushcastError, trio.TooSlowError) as failures:
            why = failures.exceptions[0]
        finally:
            if (directory / FILE).exists():
                testnet.down(directory)
        yield from found
        if why is not None:
            yield missing("lines under cover, over Tor", None, "chance", why, None)


def _measured(directory: Path, plan: LinesPlan) -> CoverRun:
    testnet.up(
        directory,
        RELAYS,
        clients_for(plan.sound + plan.faulty),
        "tor",
        _epoch(plan),
        _tell,
        authorities=DIRECTORIES,
        keepers=0,
        cover=True,
        distance=DISTANCE,
        observe_links="clients",
    )
    return trio.run(CoverScene(directory, plan.sound, plan.minutes, plan.seed, _tell).measure)


def _epoch(plan: LinesPlan) -> int:
    """Return the length of an epoch by which a day begins about when the turns do, and is over after them.

    Relays are told of a subscription within its day, or else when the next begins.
    """
    begins, least = time.time() + 60 * _BEFORE, 60 * (plan.minutes + _BEFORE)
    fitting = [one for one in _EPOCHS if EPOCHS_A_DAY * one >= least] or [_EPOCHS[-1]]
    return min(fitting, key=lambda one: begins % (EPOCHS_A_DAY * one))


def table(run: CoverRun, plan: LinesPlan) -> Iterator[Figure]:
    """Return the lines of what was seen and counted."""
    sound, faulty = ([one for one in run.clients if one.is_sound == is_sound] for is_sound in (True, False))
    yield from compared_lines(sound, faulty, run.footing, plan.seed)
    yield from cover_costs(run, sound)


def _tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure with numbers of one's own, and print the table."""
    from benchmarks.bench import line, machine

    parser = argparse.ArgumentParser(prog="python -m benchmarks.cover.lines_over_tor", description=__doc__)
    parser.add_argument("--sound", type=int, default=FULL.sound, help="daemons without a fault")
    parser.add_argument("--faulty", type=int, default=FULL.faulty, help="daemons 30 ms late with messages")
    parser.add_argument("--minutes", type=float, default=FULL.minutes, help="of turns")
    parser.add_argument("--seed", type=int, default=FULL.seed, help="of turns, and of what is drawn anew")
    configure_logs("error", False)
    print(f"machine: {machine()}", flush=True)
    for figure in figures_of(LinesPlan(**vars(parser.parse_args(arguments)))):
        print(line(figure), flush=True)
    print(f"machine: {machine()}")


if __name__ == "__main__":
    main()
