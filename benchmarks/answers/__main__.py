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
    watched_client,
    watched_edge,
    watched_users,
)
from hushcast_brokers.broker.daemon import Broker
from hushcast_central.server.daemon import CentralServer
from hushcast_node.daemon import NodeDaemon
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import make_topic, write_link
from hushcast_runtime.logs import configure_logs

SHIPS = make_topic("ships", ["lat:0..100:1", "lon:0..100:1"])
HIDDEN = ("lat in [10, 20]", "lat in [30, 40]", "lat in [50, 60]")
WHERE = "lat in [10, 12], lon in [0, 50]"
FOR_A_CLIENT: Mapping[str, Mapping[str, float]] = {
    "wanted": {"lat": 35, "lon": 1},
    "excess": {"lat": 25, "lon": 1},
}
WANTED_OR_NOT: Mapping[str, Mapping[str, float]] = {
    "wanted": {"lat": 11, "lon": 20},
    "excess": {"lat": 11, "lon": 90},
}
BURST = 60
SETTLED = 0.05  # seconds after a receipt in which the publisher, who is in the harness, has done its part
Kinds = Mapping[str, list[float]]
"""Seconds until answers came, by what they are of: two kinds."""


async def wanted_at_edge(place: Path, at_once: bool, trials: int, draw: random.Random) -> Kinds:
    """Time an edge broker's answers to what is for a client, and what is not, in drawn order."""
    async with harness(place, at_once) as made:
        publisher, watch = await watched_edge(made, SHIPS, HIDDEN)
        [taker] = watch.takers
        took: dict[str, list[float]] = {kind: [] for kind in FOR_A_CLIENT}
        for kind in draw.sample([*took] * trials, 2 * trials):
            watch.begin()
            watch.hold()
            await publisher.service.publish(SHIPS, Content(b"hello", dict(FOR_A_CLIENT[kind])))
            await watch.held(1)
            await trio.sleep(SETTLED)
            watch.release()
            took[kind].append(await watch.answer(taker))
        return took


async def wanted_at_daemon(what: str, place: Path, at_once: bool, trials: int, draw: random.Random) -> Kinds:
    """Time a client's answers, or a user's, to what it wants, and what it throws away, in drawn order."""
    wants = [(write_link(SHIPS), WHERE)]
    sender: Broker | CentralServer
    async with harness(place, at_once) as made:
        if what == "client":
            publisher, sender = await watched_client(made, wants)
            watch = Watch(sender._downstream)
            [taker] = watch.takers
        else:
            publisher, sender, [[taker]] = await watched_users(made, wants)
            watch = Watch(sender._deliveries)
        make, day = published if what == "client" else sealed, _today(publisher)
        took: dict[str, list[float]] = {kind: [] for kind in WANTED_OR_NOT}
        for kind in draw.sample([*took] * trials, 2 * trials):
            message = await make(publisher, SHIPS, day, **WANTED_OR_NOT[kind])
            watch.begin()
            bring(sender, (taker, message))
            took[kind].append(await watch.answer(taker))
            await trio.sleep(SETTLED)
        return took


async def busy_with_another(place: Path, at_once: bool, trials: int, draw: random.Random) -> Kinds:
    """Time answers of a pseudonym while another one of the same daemon, or of another, takes a burst."""
    link = write_link(SHIPS)
    async with harness(place, at_once) as made:
        wants = [[(link, WHERE), (link, "")], [(link, "")]]
        publisher, server, [[probed, same], [other]] = await watched_users(made, *wants)
        watch, day = Watch(server._deliveries), _today(publisher)
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
    """Return the chance that one of the first is later than one of the second, and half its interval."""
    above = sum((one > other) + (one == other) / 2 for one in first for other in second)
    share = above / (len(first) * len(second))
    # Hanley and McNeil, 1982; 95 %.
    q1, q2 = share / (2 - share), 2 * share**2 / (1 + share)
    variance = share * (1 - share) + (len(first) - 1) * (q1 - share**2) + (len(second) - 1) * (q2 - share**2)
    return share, 1.96 * (max(variance, 0.0) / (len(first) * len(second))) ** 0.5


def line(what: str, at_once: bool, kinds: Kinds) -> str:
    """Say what came out."""
    (first, of_first), (second, of_second) = kinds.items()
    share, around = later(of_first, of_second)
    how = "answers at once" if at_once else "as it is"
    verdict = "found" if abs(share - 0.5) > around else "no better than chance"
    times = f"{median(of_first) * 1000:.1f} ms {first}, {median(of_second) * 1000:.1f} ms {second}"
    count = f"{len(of_first)} and {len(of_second)}"
    return f"{what}, {how}: {share:.3f} ± {around:.3f} of {count} ({times}): {verdict}"


async def measure(what: str, at_once: bool, trials: int, seed: int, tell: Callable[[str], None]) -> Kinds:
    """Make trials of one kind, and tell what came out."""
    draw = random.Random(seed)  # noqa: S311 - it is to be repeated
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        if what == "pseudonyms":
            kinds = await busy_with_another(Path(place), at_once, trials, draw)
        elif what == "edge":
            kinds = await wanted_at_edge(Path(place), at_once, trials, draw)
        else:
            kinds = await wanted_at_daemon(what, Path(place), at_once, trials, draw)
    tell(line(what, at_once, kinds))
    return kinds


def main() -> None:
    """Make the trials that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="+", choices=("edge", "client", "user", "pseudonyms"))
    parser.add_argument("--trials", type=int, default=300, help="of each kind")
    parser.add_argument("--at-once", action="store_true", help="the control")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    configure_logs("error", False)
    for what in asked.what:
        trio.run(partial(measure, what, asked.at_once, asked.trials, asked.seed, partial(print, flush=True)))


if __name__ == "__main__":
    main()
