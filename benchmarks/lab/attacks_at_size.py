"""Figure: attacks on many observations, on one machine, and on a cluster of which a worker is killed.

`python -m benchmarks.lab.attacks_at_size N [ATTACK…]` makes N observations, plays all attacks
or those named on them with all cores of this machine, then on a standalone cluster of two workers of one
core, of which one is killed when the attacks have begun. It prints what both took, and which figures differ.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.figures import Effort, Figure, at_most, missing
from benchmarks.lab.standalone_cluster import HERE, standalone_cluster, write_settings

OBSERVATIONS = 300_000
RELAYS, SUBSCRIBERS, TOPICS, EPOCHS = 200, 10, 20, 4
OF_TREES = 3 * RELAYS * SUBSCRIBERS * TOPICS  # observations: each relay of each tree has a parcel and a lease
A_PUBLICATION = 92  # observations, about, with so many subscribers
MEMORY = {"spark.driver.memory": "1g", "spark.executor.memory": "1g"}  # on a cluster of two workers
ALONE = {"spark.driver.memory": "2g"}  # on one machine, where the driver does all the work
BEGUN = 6  # tables kept on disk after which a worker is killed
SAME = 1e-9  # relative: sums in another order differ in their last digits
_LOOK_EVERY = 1.0  # seconds
_HUSHCAST = (sys.executable, "-m", "hushcast_cli.start")


def figures(effort: Effort) -> Iterator[Figure]:
    """Play all attacks on the traces of one network, both ways."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        try:
            found = measure(effort.amount(OBSERVATIONS), Path(place))
        except (subprocess.CalledProcessError, TimeoutError) as error:
            yield missing("attacks on a cluster", None, "one machine", error, None)
            return
    alone, together = found["alone"], found["together"]
    rows = f"attacks on {found['rows']:,} rows, two workers, one killed"
    yield at_most(f"{rows}: figures that differ", len(found["differ"]), "of", found["figures"], 0)
    for name in ("seconds", "cpu", "megabytes"):
        yield at_most(f"{rows}: {name}", together[name], "one machine", alone[name], None)


def measure(observations: int, directory: Path, attacks: Sequence[str] = ()) -> dict[str, Any]:
    """Make so many observations, play all attacks or these both ways; return what each took, what differs."""
    source = directory / "traces"
    network = f"--nodes {RELAYS} --subscribers {SUBSCRIBERS} --topics {TOPICS} --epochs {EPOCHS}"
    amount = ("--publications", str(max(1, (observations - OF_TREES) // A_PUBLICATION)))
    alone_env = os.environ | write_settings(directory / "alone-conf", ALONE)
    made = ["lab", "traces", "generate", *network.split(), *amount, "--out", str(source), "--json"]
    done = subprocess.run(  # noqa: S603
        [*_HUSHCAST, *made], env=alone_env, check=True, capture_output=True, text=True
    )
    played = [part for name in attacks for part in ("--attack", name)]
    analysis = ["lab", "analyze", str(source), "--colluding", "0.1,0.2", *played, "--out"]
    began = time.monotonic()
    alone = _watched(_begun([*analysis, str(directory / "alone")], alone_env), began)
    together = killed_meanwhile(directory, analysis, os.environ, MEMORY)
    one, other = (
        json.loads((directory / name / "summary.json").read_text()) for name in ("alone", "together")
    )
    rows = json.loads(done.stdout.splitlines()[-1])["observations"]
    return {
        "rows": rows,
        "alone": alone,
        "together": together,
        "figures": len(_figures(one)),
        "differ": differences(one, other),
    }


def killed_meanwhile(
    directory: Path, analysis: Sequence[str], env: Mapping[str, str], settings: Mapping[str, str]
) -> dict[str, float]:
    """Run an analysis into `directory`/together on a cluster of two workers, and kill one of them meanwhile.

    Returns what it took from the kill on, and `driver_heap` (`_driver_heap`). Raises `CalledProcessError` if
    the analysis fails, and if it ended before the kill.
    """
    kept, log = directory / "checkpoints", directory / "driver-garbage.log"
    ours = {"spark.checkpoint.dir": str(kept), "spark.driver.extraJavaOptions": f"-Xlog:gc:file={log}"}
    names = write_settings(directory / "conf", {**HERE, **ours, **settings})
    with standalone_cluster(directory, env=env) as cluster:
        command = [*analysis, str(directory / "together"), "--master", cluster.master]
        process, began = _begun(command, {**env, **names}), time.monotonic()
        while len(list(kept.glob("*/rdd-*"))) < BEGUN and process.poll() is None:
            time.sleep(_LOOK_EVERY / 10)
        if process.poll() is not None:
            raise subprocess.CalledProcessError(process.returncode, command, stderr="nothing left to kill")
        cluster.workers[0].kill()
        took = _watched(process, began, [worker.pid for worker in cluster.workers])
    return took | {"driver_heap": _driver_heap(log)}


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the figures in which two summaries differ by more than rounding, with both values."""
    left, right = _figures(one), _figures(other)
    return sorted(
        f"{name}: {left.get(name)}, {right.get(name)}"
        for name in left.keys() | right.keys()
        if not _is_same(left.get(name, math.nan), right.get(name, math.nan))
    )


def _figures(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return all figures of attacks and of the network, by their names."""
    attacks = {
        f"{row['attack']} {row['profile']} {row['colluding']} {key}": value
        for row in summary["attacks"]
        for key, value in row.items()
    }
    return attacks | {f"network {key}": value for key, value in summary["network"].items()}


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SAME, abs_tol=SAME)
    return bool(one == other)


def _begun(arguments: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [*_HUSHCAST, *arguments], env=dict(env), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def _watched(process: subprocess.Popen[bytes], began: float, others: Sequence[int] = ()) -> dict[str, float]:
    """Wait for an analysis; return what it and `others` took, with all below them.

    Seconds since it `began`, seconds of processors, and the most megabytes held at one moment, where pages
    that processes share count once. Raises `CalledProcessError`.
    """
    most, worked = 0, dict[int, float]()
    while process.poll() is None:
        below = _below({process.pid, *others})
        most = max(most, sum(_resident(each) for each in below))
        worked |= {each: seconds for each in below if (seconds := _worked(each))}
        time.sleep(_LOOK_EVERY)
    _, said = process.communicate()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, "hushcast lab analyze", stderr=said)
    return {
        "seconds": round(time.monotonic() - began, 1),
        "cpu": round(sum(worked.values()), 1),
        "megabytes": round(most / 1024),
    }


def _below(roots: set[int]) -> list[int]:
    """Return processes and all below them, now."""
    above: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            above[int(stat.parent.name)] = int(_fields(stat)[1])
    found = []
    for process in above:
        at = process
        while at not in roots and at in above:
            at = above[at]
        if at in roots:
            found.append(process)
    return found


def _fields(stat: Path) -> list[str]:
    """Return what stands behind a process's name."""
    return stat.read_text().rpartition(")")[2].split()


def _worked(process: int) -> float:
    """Return the seconds of processors that a process has taken, 0 if it has ended."""
    with suppress(OSError):
        fields = _fields(Path(f"/proc/{process}/stat"))
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _resident(process: int) -> int:
    """Return the proportional resident KiB of a process, 0 if it has ended."""
    with suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return 0


def _driver_heap(log: Path) -> int:
    """Return the most megabytes of Java's heap on the driver that were left after a look for garbage."""
    return max((int(left) for left in re.findall(r"->(\d+)M\(", log.read_text())), default=0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        print(json.dumps(measure(int(sys.argv[1]), Path(place), sys.argv[2:]), indent=1))
