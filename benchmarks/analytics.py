"""Figure: the analysis of traces, how its time grows with them, and the memory that it takes.

As a program, `python -m benchmarks.analytics N`, it makes N observations, writes them as lines, and prints
the seconds that each step took, the rows there were, and the bytes of all processes at their most.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Effort, Figure, at_most, missing
from benchmarks.peers.installed import ROOT

OBSERVATIONS = 10_000_000
RELAYS, SUBSCRIBERS, EPOCHS = 1000, 10, 4
A_PUBLICATION = 73  # observations, about, with so many subscribers
WARM_UP = 10_000  # observations: the first jobs of a session load and compile what the others use
GROWTH = 1.2  # times as fast as the data
STEPS = {"generate": "making them", "read": "lines to tables", "figures": "the network's figures"}


def figures(effort: Effort) -> Iterator[Figure]:
    """Take a tenth of the observations, then all of them, each in processes of its own."""
    most = effort.amount(OBSERVATIONS)
    try:
        small, large = _in_processes(most // 10), _in_processes(most)
    except subprocess.CalledProcessError as error:
        why = error.stderr.splitlines()[-1] if error.stderr else "it failed"
        yield missing("analysis of traces: time grows at most times as the data", None, "", why, GROWTH)
        return
    rows = f"{large['rows']:,} observations"
    grown = large["rows"] / small["rows"]
    for step, name in {"read": STEPS["read"], "figures": STEPS["figures"]}.items():
        yield at_most(
            f"{name}, {rows}: time grows at most times as the data",
            large[step] / small[step],
            "the data",
            grown,
            GROWTH,
        )
    for step, name in STEPS.items():
        yield at_most(f"{name}, {rows}, s", large[step], "a tenth of them", small[step], None)
    yield at_most(
        f"memory of all processes, {rows}, MB", large["bytes"] / 1e6, "a tenth", small["bytes"] / 1e6, None
    )


def _in_processes(observations: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.analytics", str(observations)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def measure(observations: int) -> dict[str, float]:
    """Make, write, read and count so many observations; return seconds, rows and bytes."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    from hushcast_analytics import delivery_figures
    from hushcast_analytics.generator.generator_jobs import generate
    from hushcast_analytics.generator.scenario import GeneratorScenario
    from hushcast_analytics.spark_session import open_session
    from hushcast_analytics.trace_files import Traces, keep, load
    from hushcast_protocol.base.trace import SCHEMA

    def write(traces: Traces, directory: Path) -> None:
        """Write lines as daemons do, into as many files as there are partitions."""
        for table, kind in ((traces.observations, "observations"), (traces.truths, "truth")):
            columns: list[Column | str] = [
                F.lit(SCHEMA).alias("schema"),
                *(name for name in table.columns if name != "run"),
            ]
            lines = table.select(F.to_json(F.struct(*columns), {"ignoreNullFields": "true"}))
            lines.write.text(str(directory / kind))
            for number, file in enumerate((directory / kind).glob("part-*")):
                file.rename(directory / f"{number}.{kind}.jsonl")

    def run(asked: GeneratorScenario, directory: Path) -> dict[str, float]:
        took = {}
        began = time.perf_counter()
        made = generate(spark, asked, str(directory / "made"))
        took["generate"] = time.perf_counter() - began
        write(made, directory / "lines")
        began = time.perf_counter()
        keep(spark, str(directory / "lines"), str(directory / "kept"))
        took["read"] = time.perf_counter() - began
        traces = load(spark, str(directory / "kept"))
        began = time.perf_counter()
        delivery_figures.summary(traces).collect()
        took["figures"] = time.perf_counter() - began
        return {**took, "rows": traces.observations.count()}

    spark = open_session("local[*]", "bench")
    with tempfile.TemporaryDirectory() as directory:
        for name, amount in (("warm", WARM_UP), ("all", observations)):
            asked = GeneratorScenario(
                RELAYS, SUBSCRIBERS, publications=amount // A_PUBLICATION, epochs=EPOCHS, seed=1, run=name
            )
            taken = run(asked, Path(directory, name))
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        taken["bytes"] = _most_bytes(gateway.proc.pid)
        spark.stop()
    return taken


def _most_bytes(root: int) -> int:
    """Return the resident bytes, at the most, of a process and of all below it, each at its own most."""
    total, above = 0, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except OSError:
            continue  # it has ended
        above[int(status.parent.name)] = int(fields["PPid"]), int(fields.get("VmHWM", "0 kB").split()[0])
    for process in above:
        at = process
        while at in above and at != root:
            at = above[at][0]
        total += above[process][1] if at == root else 0
    return total * 1024


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
