"""What does who times acknowledgements see? `python -m benchmarks.answers --help`.

*edge*: an inner broker times an edge broker that shows a wider filter for three which hide by `--k`: does it
see which messages are for one of these? *client*: an edge broker sends a client what it asked for, and what
not, as one outside its community does: does it see which it wanted? *user*: the server times a user, whose
condition is narrower than what it asks for. *pseudonyms*: the server sends a burst to one pseudonym, and a
message to another: does it see whether both are of one daemon?

Each is told as the chance that of two answers, one of each kind, the later is of the first kind: a half if
they tell nothing. The control is the same with daemons that answer at once.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import trio

from benchmarks.answers.watched_networks import (
    Watch,
    bring,
    harness,
    published,
    sealed,
    takers,
    watched_client,
    watched_edge,
    watched_users,
)
from hushcast_brokers.broker.daemon import Broker
from hushcast_central.server.daemon import CentralServer
from hushcast_node.daemon import NodeDaemon
from hushcast_protocol.content.topics import make_topic, write_link
from hushcast_runtime.logs import configure_logs
from hushcast_testnet.cover.line_watcher import area

SHIPS = make_topic("ships", ["lat:0..100:1", "lon:0..100:1"])
HIDDEN = ("lat in [10, 20]", "lat in [30, 40]", "lat in [50, 60]")
WHERE = "lat in [10, 12], lon in [0, 50]"
FOR_A_CLIENT: Mapping[str, Mapping[str, int]] = {
    "wanted": {"lat": 35, "lon": 1},
    "excess": {"lat": 25, "lon": 1},
}
WANTED_OR_NOT: Mapping[str, Mapping[str, int]] = {
    "wanted": {"lat": 11, "lon": 20},
    "excess": {"lat": 11, "lon": 90},
}
BURST = 200
SETTLED = 0.1  # seconds after an answer in which all is taken, by clients of an edge broker, too
Kinds = Mapping[str, list[float]]
"""Seconds until answers came, by what they are of: two kinds."""


async def wanted_or_not(
    what: str, place: Path, at_once: bool, trials: int, burst: int, draw: random.Random
) -> Kinds:
    """Time answers to what is wanted, so many at once, and to what is thrown away, in drawn order."""
    sender: Broker | CentralServer
    kinds = FOR_A_CLIENT if what == "edge" else WANTED_OR_NOT
    wants = [(write_link(SHIPS), WHERE)]
    async with harness(place, at_once) as made:
        if what == "edge":
            publisher, sender = await watched_edge(made, SHIPS, HIDDEN)
        elif what == "client":
            publisher, sender = await watched_client(made, wants)
        else:
            publisher, sender, _ = await watched_users(made, wants)
        make, day, watch = sealed if what == "user" else published, _today(publisher), Watch(sender)
        [taker] = takers(sender)
        took: dict[str, list[float]] = {kind: [] for kind in kinds}
        for kind in draw.sample([*took] * trials, 2 * trials):
            messages = [await make(publisher, SHIPS, day, **kinds[kind]) for _ in range(burst)]
            watch.begin()
            bring(sender, *((taker, message) for message in messages))
            took[kind].append(await watch.answer(taker))
            await trio.sleep(SETTLED)
        return took


async def busy_with_another(place: Path, at_once: bool, trials: int, draw: random.Random) -> Kinds:
    """Time answers of a pseudonym while another one of the same daemon, or of another, takes a burst."""
    link = write_link(SHIPS)
    async with harness(place, at_once) as made:
        wants = [[(link, WHERE), (link, "")], [(link, "")]]
        publisher, server, [[probed, same], [other]] = await watched_users(made, *wants)
        watch, day = Watch(server), _today(publisher)
        took: dict[str, list[float]] = {"same": [], "other": []}
        for kind in draw.sample([*took] * trials, 2 * trials):
            busy = same if kind == "same" else other
            messages = [await sealed(publisher, SHIPS, day, lat=11, lon=20) for _ in range(BURST + 1)]
            watch.begin()
            bring(server, *zip([busy] * BURST + [probed], messages, strict=True))
            took[kind].append(await watch.answer(probed))
            await trio.sleep(1.5)  # all has been taken
        return took


def _today(daemon: NodeDaemon) -> int:
    carrier = daemon.service._publisher._carrier
    return carrier.calendar.day(time.time())


def later(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the chance that one of the first is later than one of the second, and how far chance takes it.

    Where nothing is told it is a half, in 95 of 100 runs by no more than so much off (Mann and Whitney).
    """
    pairs = len(first) * len(second)
    return area(second, first), 1.96 * ((len(first) + len(second) + 1) / (12 * pairs)) ** 0.5


def line(what: str, at_once: bool, kinds: Kinds) -> str:
    """Say what came out."""
    (first, of_first), (second, of_second) = kinds.items()
    share, around = later(of_first, of_second)
    how = "answers at once" if at_once else "as it is"
    verdict = "found" if abs(share - 0.5) > around else "no better than chance"
    times = f"{median(of_first) * 1000:.1f} ms {first}, {median(of_second) * 1000:.1f} ms {second}"
    count = f"{len(of_first)} and {len(of_second)}"
    return f"{what}, {how}: {share:.3f} of {count}, chance 0.5 ± {around:.3f} ({times}): {verdict}"


async def measure(
    what: str, at_once: bool, trials: int, burst: int, seed: int, tell: Callable[[str], None]
) -> Kinds:
    """Make trials of one kind, and tell what came out."""
    draw = random.Random(seed)  # noqa: S311 - it is to be repeated
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        if what == "pseudonyms":
            kinds = await busy_with_another(Path(place), at_once, trials, draw)
        else:
            kinds = await wanted_or_not(what, Path(place), at_once, trials, burst, draw)
    tell(line(what if burst == 1 else f"{what}, {burst} at once", at_once, kinds))
    return kinds


def main() -> None:
    """Make the trials that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="+", choices=("edge", "client", "user", "pseudonyms"))
    parser.add_argument("--trials", type=int, default=300, help="of each kind")
    parser.add_argument("--burst", type=int, default=1, help="messages sent at once, but to pseudonyms")
    parser.add_argument("--at-once", action="store_true", help="the control")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    configure_logs("error", False)
    for what in asked.what:
        trio.run(
            partial(
                measure,
                what,
                asked.at_once,
                asked.trials,
                asked.burst,
                asked.seed,
                partial(print, flush=True),
            )
        )


if __name__ == "__main__":
    main()
