"""Does whoever stalls daemons see which has a box, or which published? `python -m benchmarks.stalls --help`.

*Who reads*: three daemons run relays and are alike, each has a box at a host of the attacker's. Of one box,
drawn anew each trial, the owner's answers to the host are timed while strangers flood each relay in turn; the
guess is the relay whose flood went with the latest answers. Chance is 1 in 3.

*Who published*: two clients have a box there each. One, drawn, publishes; the attacker is the origin, and
answers the drop with as much junk as fits into a frame, while the answers of both owners are timed. The guess
is the one whose answers are later than its own ever before. Chance is 1 in 2.

Controls are the same trials with daemons that have an old fault: they hold their loop at each piece of junk.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from benchmarks.stalls.stalled_network import Making, StalledNetwork, TimedBox, say
from benchmarks.tor.private_tor import READY_WITHIN, over_tor
from hushcast_protocol.base.intervals import wilson
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_testnet import processes
from hushcast_testnet.tor import private_tor
from hushcast_testnet.tor.tor_network import TorClient

WATCHED = 0.6  # seconds for which answers are timed at least, of each flood, and after a drop
BEFORE = 0.1  # seconds before a drop came in which its publisher may have been late already
PAUSE = 0.01  # seconds between an answer and the next sign of life
REST = 0.3  # seconds after each flood and publication
READERS, PUBLISHERS = 3, 2
DROP_WITHIN = 60.0  # seconds from a publication to its drop
Times = Sequence[float]
LATENESS: Mapping[str, Callable[[Times], float]] = {
    "mean": statistics.fmean,
    "latest": max,
}
"""What may be taken for how late answers are; both are told."""
Guesses = Mapping[str, bool]
"""Whether the guess is right, by what is taken for late."""
Trial = Callable[[StalledNetwork, random.Random], Awaitable[Guesses]]


async def answers(box: TimedBox, seconds: float) -> list[tuple[float, float]]:
    """Time answers for so long, and until the last one is there."""
    end = trio.current_time() + seconds
    timed: list[tuple[float, float]] = []
    while trio.current_time() < end:
        timed.append(await box.answer())
        await trio.sleep(PAUSE)
    return timed


async def who_reads(network: StalledNetwork, draw: random.Random) -> Guesses:
    """Make one trial."""
    owner = draw.randrange(READERS)
    taken: dict[int, Times] = {}
    for relay in draw.sample(range(READERS), READERS):
        say(network.flooder, f"flood {relay}")
        taken[relay] = [took for _, took in await answers(network.boxes[owner], WATCHED)]
        say(network.flooder, "rest")
        await network.boxes[owner].answer()  # what strangers have started is done by then
    return {
        name: max(taken, key=lambda relay: late(taken[relay])) == owner for name, late in LATENESS.items()
    }


class WhoPublished:
    """Makes trials, and knows how late answers were before."""

    def __init__(self) -> None:
        self._quiet: list[list[float]] = [[] for _ in range(PUBLISHERS)]

    async def trial(self, network: StalledNetwork, draw: random.Random) -> Guesses:
        """Make one trial."""
        publisher = draw.randrange(PUBLISHERS)
        timed: list[list[tuple[float, float]]] = [[] for _ in range(PUBLISHERS)]
        for number, box in enumerate(network.boxes):
            self._quiet[number] += [took for _, took in await answers(box, REST)]
        async with trio.open_nursery() as nursery:
            over = trio.Event()

            async def watch(number: int) -> None:
                while not over.is_set():
                    timed[number].append(await network.boxes[number].answer())
                    await trio.sleep(PAUSE)

            for number in range(PUBLISHERS):
                nursery.start_soon(watch, number)
            dropped = await self._drop(network, publisher)
            await trio.sleep(WATCHED)
            over.set()
        network.hosts[0].answers_junk = False
        late = [[took for began, took in of if began + took > dropped - BEFORE] or [0.0] for of in timed]
        guesses = {}
        for name, lateness in LATENESS.items():
            beyond = [
                lateness(late[number]) - statistics.fmean(self._quiet[number]) for number in range(PUBLISHERS)
            ]
            guesses[name] = beyond.index(max(beyond)) == publisher
        return guesses

    async def _drop(self, network: StalledNetwork, publisher: int) -> float:
        """Have one publish; return when its drop came."""
        host = network.hosts[0]
        host.dropped, host.answers_junk = trio.Event(), True
        say(network.daemons[publisher], "publish topic of nobody")
        with trio.fail_after(DROP_WITHIN):
            await host.dropped.wait()
        return trio.current_time()


async def series(network: StalledNetwork, trial: Trial, trials: int, seed: int) -> list[Guesses]:
    """Make so many trials in a row."""
    draw = random.Random(seed)  # noqa: S311 - it is to be repeated
    return [await trial(network, draw) for _ in range(trials)]


def lines(what: str, guesses: Sequence[Guesses], chance: float) -> Iterator[str]:
    """Say how often the guess was right."""
    for name in LATENESS:
        hits = sum(guess[name] for guess in guesses)
        least, most = wilson(hits / len(guesses), len(guesses))
        verdict = "found" if least > chance else "no better than chance"
        share = f"{hits} of {len(guesses)}, {least:.0%} to {most:.0%}, chance {chance:.0%}"
        yield f"{what}, by the {name}: {share}: {verdict}"


@asynccontextmanager
async def transports(
    directory: Path, is_tor: bool, count: int
) -> AsyncIterator[tuple[Transport, Sequence[TorClient]]]:
    """Run what carries: loopback tcp, or a private Tor with a tor for each daemon, the flooder and us."""
    if not is_tor:
        yield TcpTransport(), ()
        return
    with trio.fail_after(READY_WITHIN):
        tors = await private_tor.start(directory / "tor", clients=count + 2)
    try:
        with trio.fail_after(READY_WITHIN):
            await private_tor.wait_ready(tors)
        async with over_tor(tors.clients[0]) as transport:
            yield transport, tors.clients[1:]
    finally:
        with trio.CancelScope(shield=True):
            await processes.stop(tors.processes)


async def measure(
    what: str, is_tor: bool, stalls: Sequence[tuple[float, int]], seed: int, tell: Callable[[str], None]
) -> dict[float, list[Guesses]]:
    """Make trials of one kind in one network, so many with each stall; 0 is the daemon as it is."""
    reads = what == "reads"
    count, trial = (READERS, who_reads) if reads else (PUBLISHERS, WhoPublished().trial)
    found: dict[float, list[Guesses]] = {}
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        directory = Path(place)
        async with transports(directory, is_tor, count) as (transport, tors):
            making = Making(directory, transport, tors, count, are_clients=not reads)
            async with making.network() as network:
                for stall, trials in stalls:
                    network.stall(stall)
                    found[stall] = await series(network, trial, trials, seed)
                    held = f"a loop held for {stall} s" if stall else "daemons as they are"
                    over = "a private Tor" if is_tor else "tcp"
                    for line in lines(f"who {what}, {over}, {held}", found[stall], 1 / count):
                        tell(line)
    return found


def main() -> None:
    """Make the trials that are asked for, and say what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="+", choices=("reads", "published"))
    parser.add_argument("--tor", action="store_true", help="over a private Tor in place of loopback tcp")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--controls", type=int, default=30, help="trials with each fault")
    parser.add_argument(
        "--stalls", type=float, nargs="*", default=[0.3, 0.05], help="seconds, one control each"
    )
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    stalls = [*((stall, asked.controls) for stall in asked.stalls), (0.0, asked.trials)]
    for what in asked.what:
        trio.run(partial(measure, what, asked.tor, stalls, asked.seed, partial(print, flush=True)))


if __name__ == "__main__":
    main()
