"""`make soak`: chaos on each carrier, kills, take-overs, steady traffic on real daemons; adversaries."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hushcast_protocol.base.errors import HushcastError
from hushcast_testnet import testnet
from hushcast_testnet.chaos.chaos_run import Chaos, run_chaos
from hushcast_testnet.inventory import load
from hushcast_testnet.tor.distance import Distance
from soak.authorities import watch_authorities
from soak.away import PUBLICATIONS, watch_away
from soak.bursts import watch_bursts
from soak.devices import watch_devices
from soak.directories.scene import Plan
from soak.located_feed import FeedPlan, watch_feed
from soak.memory import watch_memory
from soak.take_over import watch_take_overs

EPOCH = 60  # seconds: a day ends every 24 minutes, so most runs see one epoch after another, some a day's end
AWAY_EPOCH = 20  # seconds: thirty of them are ten minutes
SHARDS = partial(
    Plan, epochs=26, relays=12, pause=20.0, directories=3, liars=0, shard_size=6, topics=4
)  # a network with nobody who lies, cut anew after a day
FEED = FeedPlan(60, 20)  # twenty minutes of short intervals: what is lost is lost at their ends
DEVICES_EPOCH = 15  # seconds; a round takes three or four of them
ROUNDS_A_MINUTE = 3  # of devices, however long they take
BURSTS_A_MINUTE = 20  # between houses; they take less over tcp, and more over Tor
KILLS_A_MINUTE = 2  # of gateways; they take less, a few seconds each
Progress = Callable[[str], None]


def chaos(directory: Path, minutes: float, seed: int, progress: Progress) -> dict[str, Any]:
    """All kinds of faults on ten daemons."""
    testnet.up(directory, 8, 2, "tcp", EPOCH, progress, breakable=True)
    return run_chaos(directory, Chaos(minutes, seed), progress)


def central(directory: Path, minutes: float, seed: int, progress: Progress) -> dict[str, Any]:
    """All kinds of faults on a server, three proxies and six nodes."""
    testnet.up(directory, 6, None, "tcp", EPOCH, progress, breakable=True, carrier="central", proxies=3)
    return run_chaos(directory, Chaos(minutes, seed), progress)


def brokers(directory: Path, minutes: float, seed: int, progress: Progress) -> dict[str, Any]:
    """All kinds of faults on a root, two inner and three edge brokers, and six nodes."""
    testnet.up(directory, 6, None, "tcp", EPOCH, progress, breakable=True, carrier="brokers")
    return run_chaos(directory, Chaos(minutes, seed), progress)


def kills(directory: Path, minutes: float, seed: int, progress: Progress) -> dict[str, Any]:
    """Twenty daemons, killed at 20 random moments a minute, each started again within three seconds."""
    testnet.up(directory, 16, 4, "tcp", EPOCH, progress)
    return run_chaos(directory, Chaos(minutes, seed, ("kill",), every=3, longest=3), progress)


def memory(directory: Path, minutes: float, seed: int, progress: Progress) -> dict[str, Any]:
    """Steady traffic on eight daemons, nothing broken."""
    testnet.up(directory, 6, 2, "tcp", EPOCH, progress)
    return watch_memory(directory, minutes, seed, progress)


def take_over(directory: Path, minutes: float, seed: int, progress: Progress) -> dict[str, Any]:
    """Two gateways with one state, of which the one that serves is killed, 20 times in ten minutes."""
    return watch_take_overs(directory, int(KILLS_A_MINUTE * minutes), seed, progress)


def authorities(
    directory: Path, minutes: float, seed: int, progress: Progress, distance: Distance
) -> dict[str, Any]:
    """Five directories over Tor of which two lie, for a day of 24 epochs in any case."""
    return watch_authorities(directory, Plan(EPOCH, seed=seed), progress, distance)


def shards(
    directory: Path, minutes: float, seed: int, progress: Progress, distance: Distance
) -> dict[str, Any]:
    """Two shards over Tor, for a day of 24 epochs and two of the next, in any case."""
    return watch_authorities(directory, SHARDS(EPOCH, seed=seed), progress, distance)


def away(
    directory: Path, minutes: float, seed: int, progress: Progress, distance: Distance
) -> dict[str, Any]:
    """Two subscribers with boxes at hosts that are away for thirty epochs; the host of one is killed."""
    testnet.up(directory, 8, 3, "tor", AWAY_EPOCH, progress, distance=distance)
    return watch_away(directory, PUBLICATIONS, progress)


def bursts(directory: Path, minutes: float, seed: int, progress: Progress) -> dict[str, Any]:
    """Two houses that publish 200 bursts to each other in ten minutes, with a kill in every second one."""
    testnet.up(directory, 4, 2, "tcp", EPOCH, progress, with_gateways=True)
    return watch_bursts(directory, int(BURSTS_A_MINUTE * minutes), seed, progress)


def bursts_over_tor(
    directory: Path, minutes: float, seed: int, progress: Progress, distance: Distance
) -> dict[str, Any]:
    """The same over Tor, which takes longer."""
    testnet.up(directory, 4, 2, "tor", EPOCH, progress, with_gateways=True, distance=distance)
    return watch_bursts(directory, int(BURSTS_A_MINUTE * minutes), seed, progress)


def located_feed(
    directory: Path, minutes: float, seed: int, progress: Progress, distance: Distance
) -> dict[str, Any]:
    """An owner of a located feed over Tor that is killed twice and takes another key, for 60 intervals."""
    testnet.up(directory, 4, 2, "tor", EPOCH, progress, distance=distance)
    members = load(directory).members
    clients = [Path(member.socket or "") for member in members if member.role == "client"]
    relay = next(Path(member.socket or "") for member in members if member.role == "relay")
    sockets = {"owner": clients[0], "provider": clients[1], "subscriber": relay}
    return watch_feed(directory / "feed", sockets, FEED, progress)


def devices(
    directory: Path, minutes: float, seed: int, progress: Progress, distance: Distance
) -> dict[str, Any]:
    """Devices of one person over Tor that are killed and away, subscribe and read; one is lost. 30 rounds."""
    testnet.up(directory, 4, 4, "tor", DEVICES_EPOCH, progress, distance=distance)
    return watch_devices(directory, int(ROUNDS_A_MINUTE * minutes), seed, progress)


NO_TOR = {run.__name__: run for run in (chaos, central, brokers, kills, memory, take_over, bursts)}
OVER_TOR = {run.__name__: run for run in (authorities, shards, away, devices, located_feed, bursts_over_tor)}
RUNS = (*NO_TOR, *OVER_TOR)


def soak(names: Sequence[str], minutes: float, seed: int, progress: Progress, distance: Distance) -> bool:
    """Run what is named, one after another, and print a JSON object for each; return whether all held.

    What runs over Tor does so with tors at this `distance`.

    The testnet of a run that did not hold is kept, for its traces and logs.
    """
    held = True
    for name in names:
        directory = Path(tempfile.mkdtemp(prefix=f"hushcast-soak-{name}-")) / "testnet"
        try:
            if name in OVER_TOR:
                figures = OVER_TOR[name](directory, minutes, seed, progress, distance)
            else:
                figures = NO_TOR[name](directory, minutes, seed, progress)
        except* HushcastError as errors:
            figures = {"ok": False, "error": [str(error) for error in errors.exceptions]}
        finally:
            if (directory / "testnet.json").exists():
                testnet.down(directory, progress)
        if figures["ok"]:
            shutil.rmtree(directory.parent)
        else:
            figures["kept"] = str(directory)
        held = held and figures["ok"]
        print(json.dumps({"run": name, "seed": seed, **figures}), flush=True)
    return held


def main() -> None:
    """Run the command line of `make soak`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", help=f"of {', '.join(RUNS)}; all unless given")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--distance", type=int, default=0, help=f"milliseconds between tors, in {', '.join(OVER_TOR)}"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.runs) - set(RUNS):
        parser.error(f"there is no run {', '.join(unknown)}")
    try:
        distance = Distance(chosen.distance, chosen.seed)
    except HushcastError as error:
        parser.error(str(error))
    if distance.ms and not set(chosen.runs or RUNS) <= set(OVER_TOR):
        parser.error(f"a distance is between tors: name {', '.join(OVER_TOR)} alone")
    began = time.monotonic()

    def progress(text: str) -> None:
        print(f"[{time.monotonic() - began:6.0f}] {text}", file=sys.stderr, flush=True)

    sys.exit(not soak(chosen.runs or RUNS, chosen.minutes, chosen.seed, progress, distance))


if __name__ == "__main__":
    main()
