"""Figure: from publication to delivery over a private Tor network, at a steady rate for a minute."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator

from benchmarks.figures import Effort, Figure, at_most, missing
from hushcast_protocol.base.errors import HushcastError
from hushcast_testnet.demonstrations.carrier_demo import overlay_course
from hushcast_testnet.demonstrations.course import run

RELAYS, CLIENTS = 8, 2
RATE = 10  # messages a second
SECONDS = 60
MEDIAN, LATEST = 1.5, 5.0  # seconds


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure once: a minute of it is long enough to repeat. All daemons publish in turn."""
    daemons = RELAYS + CLIENTS
    rate = f"{RATE} messages a second on {daemons} daemons over Tor"
    median = f"publication to delivery, median, seconds, {rate}: at most times"
    latest = f"publication to delivery, 99th percentile, seconds, {rate}: at most times"
    lost = f"deliveries lost, {rate}: at most times"
    publishers = tuple(f"relay-{number}" for number in range(1, RELAYS + 1))
    publishers += tuple(f"client-{number}" for number in range(1, CLIENTS + 1))
    publications = effort.amount(RATE * SECONDS)
    try:
        outcome = run(overlay_course(RELAYS, CLIENTS, publishers, publications, 1 / RATE), _tell)
    except HushcastError as why:
        yield missing(median, None, "the bound", why, 1)
        return
    delays = sorted(delay for delay in outcome.delays if delay is not None)
    yield at_most(median, statistics.median(delays), "the bound", MEDIAN, 1)
    yield at_most(latest, statistics.quantiles(delays, n=100)[-1], "the bound", LATEST, 1)
    yield at_most(lost, len(outcome.delays) - len(delays), "all deliveries", len(outcome.delays), 0)


def _tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr)
