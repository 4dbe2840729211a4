"""How long it takes until all is delivered again after a broker left, and after one joined: by hand.

    python tests/brokers/leaving.py 10

For each number of layers so many trees: two levels of inner brokers, six readers at three edge brokers. An
inner broker with two edge brokers dies, five messages are published, and the root lists it no more. Then
another one joins, and takes over an edge broker for which five messages wait at its parent, which stays.
Seconds are virtual, from the new tree on; a stream takes 0.05 to 0.15 s one way.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

import helper_folders  # noqa: F401
import trio
import trio.testing
from broker_daemons import TreeOfDaemons, sent, tree_of_daemons
from full_scene import ROWS, SIX, started
from small_network import ONE, Ear

from hushcast_runtime.logs import LEVELS, log

PROFILES = ("full/3", "full/2/apart", "full/3/apart", "full/4/apart")
WITHIN = 1200.0  # virtual seconds in which all has come


async def all_have(ears: list[Ear], count: int) -> float:
    """Wait until all readers have so many; return the seconds since now."""
    began = trio.current_time()
    for ear in ears:
        assert len(set(await ear.hears(count, within=WITHIN))) == count
    return trio.current_time() - began


async def changed(network: TreeOfDaemons, ears: list[Ear], count: int) -> float:
    """Have the root list who is there now; return the seconds until all have all."""
    began = trio.current_time()
    await network.list_all()
    await all_have(ears, count)
    return trio.current_time() - began


async def measured(profile: str, seed: int) -> tuple[float, float]:
    """Return the seconds after a broker has left, and after another has joined."""
    async with tree_of_daemons(0, ROWS, seed=seed, profile=profile) as network:
        nodes = await started(network, SIX)
        ears = [await node.listen(ONE) for node in nodes]
        gone = network["inner 1"]
        await gone.stop()
        for number in range(5):
            await sent(nodes[5], b"while it is away %d" % number)
        network["edge 1"].parent = network["edge 2"].parent = network["inner 2"]
        network.members.remove(gone)
        left = await changed(network, ears, 5)
        joined = network.add("inner 3", "inner", network["top"])
        network["edge 1"].parent = joined
        await joined.start()
        await network["edge 1"].stop()
        for number in range(5):
            await sent(nodes[5], b"while its child is away %d" % number)
        began = trio.current_time()
        await network.list_all()
        await network["edge 1"].start()
        await all_have(ears, 10)
        return left, trio.current_time() - began


def main(times: int) -> None:
    """Print a line for each: median and longest."""
    log._silent = LEVELS
    for profile in PROFILES:
        clock = trio.testing.MockClock
        found = [
            trio.run(measured, profile, seed, clock=clock(autojump_threshold=0)) for seed in range(times)
        ]
        told = ", ".join(f"{median(one):.0f} ({max(one):.0f})" for one in zip(*found, strict=True))
        print(f"{profile:14} left, joined: {told} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
