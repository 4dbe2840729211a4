"""Figure: what commands and a daemon take to start, and an idle daemon holds, as processes, against bounds.

CPU time is of the whole process, Python's own start included, which stands beside it: other programs of the
machine disturb that least.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import trio

import hushcast
from benchmarks.figures import Effort, Figure, at_most
from benchmarks.processes import START_WITHIN, cpu_seconds, resident, running
from hushcast_testnet.inventory import Member, load

HELP, STATUS, READY = 0.15, 0.2, 1.0  # seconds
HELD, IDLE = 40.0, 5.0  # MB of a daemon that has been idle for these seconds
_HUSHCAST = (sys.executable, "-m", "hushcast_cli.start")
_NOTHING = (sys.executable, "-c", "pass")


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure commands and Python alone in turns, then a client of a network of two relays over `tcp`."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place, _network(Path(place)) as client:
        status = (*_HUSHCAST, "status", "--socket", str(client.socket))
        commands = {"nothing": _NOTHING, "help": (*_HUSHCAST, "--help"), "status": status}
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(effort.runs):
            for name, command in commands.items():
                taken[name].append(_cpu(command))
        cost = {name: statistics.median(values) for name, values in taken.items()}
        for name, text, bound in (("help", "hushcast --help", HELP), ("status", "hushcast status", STATUS)):
            yield at_most(f"{text}, seconds of CPU: at most times", cost[name], "the bound", bound, 1)
            yield at_most(f"{text}, seconds of CPU", cost[name], "python -c pass", cost["nothing"], None)
        starts = [trio.run(_start, Path(place), Path(client.config), number) for number in range(effort.runs)]
        cpu, seconds, held = (statistics.median(values) for values in zip(*starts, strict=True))
        ready = "a daemon until it is ready over tcp"
        yield at_most(f"{ready}, seconds of CPU: at most times", cpu, "the bound", READY, 1)
        yield at_most(f"{ready}, seconds", seconds, "its CPU", cpu, None)
        yield at_most("an idle daemon, MB: at most times", held, "the bound", HELD, 1)


@contextmanager
def _network(place: Path) -> Iterator[Member]:
    """Run a network; yield its client."""
    directory = ("--dir", str(place / "net"))
    up = ("--transport", "tcp", "--nodes", "2", "--clients", "1", "--epoch", "3600")
    _check(*_HUSHCAST, "testnet", "up", *up, *directory)
    try:
        yield next(one for one in load(place / "net").members if one.role == "client")
    finally:
        _check(*_HUSHCAST, "testnet", "down", *directory)


def _check(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603


def _cpu(command: Sequence[str]) -> float:
    """Run a command to its end; return the CPU seconds that it took."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed")
    return used.ru_utime + used.ru_stime


async def _start(place: Path, like: Path, number: int) -> tuple[float, float, float]:
    """Start a client configured like another, as systemd does.

    Returns CPU seconds and seconds until it is ready, and the MB that it holds when idle.
    """
    state, config = place / f"client{number}", place / f"client{number}.toml"
    config.write_text(like.read_text().replace(str(like.parent), str(state)))
    began = time.perf_counter()
    with running([*_HUSHCAST, "run", "node", "--config", str(config)], place / "log") as process:
        # The library looks less often, the longer it waits.
        while not (socket := state / "control.sock").exists() and process.poll() is None:  # noqa: ASYNC110
            await trio.sleep(0.01)
        async with hushcast.connect(socket, wait=True, timeout=START_WITHIN) as daemon:
            while not (await daemon.status())["ready"]:  # noqa: ASYNC110 - nobody tells when
                await trio.sleep(0.01)
            cpu, seconds = cpu_seconds(process), time.perf_counter() - began
        await trio.sleep(IDLE)
        return cpu, seconds, resident(process.pid) / 1e6
