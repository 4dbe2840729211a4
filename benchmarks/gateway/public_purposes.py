"""The public benchmark for purposes in MQTT against one of our sides, by its own client program and analysis.

    python -m benchmarks.gateway.public_purposes DIR CONFIG [--side NAME] [--seconds N] [--python PYTHON]

DIR is a checkout of github.com/DAMSlabUMBC/MQTT-DAP-Benchmark, CONFIG one of its `test-configs`, PYTHON one
that can import what it needs: paho-mqtt, PyYAML, requests, ischedule, rich. Nothing of it is part of this
repository. Its clients say purposes by user properties where CONFIG has the method 2 (`DAP-MP` with each
message, `DAP-SP` with each subscription) or 3 (`DAP-MP` to a topic that registers).
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import machine
from benchmarks.processes import cpu_seconds
from benchmarks.purpose_experiments.sides import ALL, Given, Side, started

_PURPOSE = re.compile(r'\b(?:purpose_filter|new_purpose|operational_purpose): *"?([^"\s]+)"?')
_OPERATIONS = "DAP_op", "dap_op"  # our purposes are in lower case
_SHOWN = (
    "Total Expected",
    "Total Received",
    "Total Invalid Messages",
    "Total Rejected",
    "Avg False Accept Rate",
    "Avg False Reject Rate",
    "Latency Avg (ms)",
)
_PATIENCE = 3_600  # seconds: its analysis compares each message received with each sent


def main(arguments: list[str] | None = None) -> int:
    """Run it, print what it found and what the broker's CPU did; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gateway.public_purposes", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("checkout", type=Path, metavar="DIR")
    parser.add_argument("config", type=Path, metavar="CONFIG")
    parser.add_argument("--side", default="on publish, cached", choices=[side.name for side in ALL])
    parser.add_argument("--seconds", type=int, help="how long it publishes; as CONFIG has it unless given")
    parser.add_argument("--python", default=sys.executable, help="runs the benchmark")
    options = parser.parse_args(arguments)
    side = next(one for one in ALL if one.name == options.side)
    print(f"machine: {machine()}\n{options.config.stem}, {side.name}")
    command = [options.python, str(options.checkout.resolve() / "benchmark" / "Benchmark.py")]
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as folder:
        for name, value in run(command, options.config.read_text(), side, options.seconds, Path(folder)):
            print(f"{name}: {value}")
    return 0


def run(
    command: list[str], config: str, side: Side, seconds: int | None, place: Path
) -> Iterator[tuple[str, str]]:
    """Yield what its analysis found, and what the broker took."""
    config = adapted(config, seconds)
    written, log, metrics = place / "config.yaml", place / "log", place / "metrics.csv"
    written.write_text(config)
    named = tuple(sorted(set(_PURPOSE.findall(config))))
    with started(side, place / "side", Given(named, named)) as broker:
        port = broker.listening()
        subprocess.run(  # noqa: S603
            [*command, "run", str(written), "127.0.0.1", "-p", str(port), "-o", str(log)],
            cwd=place,
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
        taken = cpu_seconds(broker.process)
    subprocess.run(  # noqa: S603
        [*command, "analyze", str(log), "-o", str(metrics)],
        cwd=place,
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=_PATIENCE,
    )
    with metrics.open(newline="") as file:
        found = {row[1]: row[2] for row in csv.reader(file) if len(row) > 2}
    yield from ((name, found[name]) for name in _SHOWN)
    yield "CPU of the broker (s), start and connections included", f"{taken:.2f}"


def adapted(config: str, seconds: int | None) -> str:
    """Return a configuration that this machine can run: no exporter of metrics to ask, purposes as ours."""
    config = config.replace("monitor_broker: true", "monitor_broker: false").replace(*_OPERATIONS)
    if seconds is not None:
        config = re.sub(r"duration_ms: \d+", f"duration_ms: {seconds * 1000}", config)
    return config


if __name__ == "__main__":
    sys.exit(main())
