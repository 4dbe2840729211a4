"""Figure: from publication to delivery over a private Tor network, at a steady rate for a minute."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.figures import Effort, Figure, at_most, missing
from benchmarks.tor.private_tor import DISTANCES
from hushcast_protocol.base.errors import HushcastError
from hushcast_testnet.demonstrations.carrier_demo import overlay_course
from hushcast_testnet.demonstrations.course import CourseOutcome, run
from hushcast_testnet.tor.distance import NEAR, Distance

RELAYS, CLIENTS = 8, 2
RATE = 10  # messages a second
SECONDS = 60
MEDIAN, LATEST = 1.5, 5.0  # seconds, where tors are near


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure once at each distance: a minute of it is long enough to repeat. All daemons publish in turn."""
    for distance in DISTANCES:
        yield from _figures(effort, distance)


def _figures(effort: Effort, distance: Distance) -> Iterator[Figure]:
    rate = f"{RATE} messages a second on {RELAYS + CLIENTS} daemons over Tor, tors {distance.ms} ms apart"
    median = f"publication to delivery, median, seconds, {rate}: at most times"
    latest = f"publication to delivery, 99th percentile, seconds, {rate}: at most times"
    lost = f"deliveries lost, {rate}: at most times"
    bound = 1 if distance == NEAR else None
    publishers = tuple(f"relay-{number}" for number in range(1, RELAYS + 1))
    publishers += tuple(f"client-{number}" for number in range(1, CLIENTS + 1))
    publications = effort.amount(RATE * SECONDS)
    course = overlay_course(RELAYS, CLIENTS, publishers, publications, 1 / RATE)
    outcome: CourseOutcome | None = None
    why: BaseException | None = None
    try:
        outcome = run(replace(course, distance=distance), _tell)
    except* HushcastError as failures:  # in groups, as a publication that finds no relay in time ends the run
        why = failures.exceptions[0]
    if outcome is None:
        yield missing(median, None, "the bound", why, bound)
        return
    delays = sorted(delay for delay in outcome.delays if delay is not None)
    peer = "the bound" if bound else "the bound where they are near"
    yield at_most(median, statistics.median(delays), peer, MEDIAN, bound)
    yield at_most(latest, statistics.quantiles(delays, n=100)[-1], peer, LATEST, bound)
    yield at_most(lost, len(outcome.delays) - len(delays), "all deliveries", len(outcome.delays), 0)


def _tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr)
