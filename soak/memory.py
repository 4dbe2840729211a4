"""Memory: what each daemon of a testnet holds resident, from its warming up to the end of a run."""

from __future__ import annotations

import os
import random
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from hushcast_runtime.storage.state_lock import holder
from hushcast_testnet.chaos.journal import Journal
from hushcast_testnet.chaos.traffic import ChaosTraffic
from hushcast_testnet.inventory import Member, Testnet, load

WARM_UP = 60.0  # seconds: imports, caches, the first connections
GROWTH = 0.05  # of what was resident after the warm-up
RATE = 5.0  # messages a second
LOOK_EVERY = 1.0  # seconds
WINDOW = 10  # looks whose median is compared: one look more or less decides nothing


def resident(member: Member) -> int:
    """Return the bytes that a daemon has resident; 0 if it does not run."""
    pid = holder(Path(member.state))
    if pid is None:
        return 0
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def watch_memory(
    directory: Path, minutes: float, seed: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Put steady traffic on a running testnet; return the growth of each daemon as a share.

    `ok` tells whether none grew by `GROWTH` after `WARM_UP`, and all ran to the end.
    """
    testnet = load(directory)
    looks = trio.run(_watch, directory, testnet, minutes * 60, seed, progress)
    growth = {
        name: round(statistics.median(sizes[-WINDOW:]) / statistics.median(sizes[:WINDOW]) - 1, 4)
        for name, sizes in looks.items()
    }
    worst = max(growth.values())
    alive = all(min(sizes) > 0 for sizes in looks.values())
    megabytes = {name: round(sizes[-1] / 2**20, 1) for name, sizes in looks.items()}
    return {"ok": alive and worst < GROWTH, "worst": worst, "growth": growth, "megabytes": megabytes}


async def _watch(
    directory: Path, testnet: Testnet, seconds: float, seed: int, progress: Callable[[str], None]
) -> dict[str, list[int]]:
    looks: dict[str, list[int]] = defaultdict(list)
    daemons = [member for member in testnet.members if member.role != "directory"]
    journal = Journal(directory / "chaos" / "memory.jsonl", trio.current_time)
    traffic = ChaosTraffic("memory", journal, random.Random(seed))  # noqa: S311
    async with trio.open_nursery() as nursery:
        for member in daemons:
            if member.role == "client":
                await nursery.start(traffic.listen, member)
        nursery.start_soon(traffic.publish, daemons, RATE, seconds)
        began = trio.current_time()
        while (now := trio.current_time() - began) < seconds:
            if now >= WARM_UP:
                for member in testnet.members:
                    looks[member.name].append(resident(member))
                if len(looks["directory"]) % 60 == 1:
                    total = sum(sizes[-1] for sizes in looks.values()) / 2**20
                    progress(f"{now:5.0f} s  {total:.1f} MiB in {len(looks)} daemons")
            await trio.sleep(LOOK_EVERY)
        nursery.cancel_scope.cancel()
    journal.close()
    return looks
