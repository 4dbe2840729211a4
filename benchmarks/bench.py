"""Runs the figures, prints a table and writes `results.json`. From the root: `python -m benchmarks.bench`."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import Effort, Figure
from hushcast_runtime.logs import configure_logs

# In this order; a module is imported when its turn comes, so that none pays for another's memory.
MODULES = (
    "relay.lookup",
    "relay.forwarding",
    "relay.subscriptions",
    "relay.memory",
    "relay.traffic",
    "analytics",
    "tor.hop",
    "tor.delivery",
    "gateway.beside_brokers",
    "library",
    "central.rerouting",
    "central.beside_relay",
    "brokers.filters",
    "brokers.privacy_models",
    "purposes",
    "gateway.gateway_purposes",
    "tor.distance",
    "located_words",
    "gateway.gateway_size",
    "starting",
    "relay.idle_connections",
    "cover.lines_over_tor",
)
FIGURES = dict(enumerate(MODULES, 1))
FULL, SHORT = Effort(5, 1.0), Effort(5, 0.1)
RESULTS = Path(__file__).with_name("results.json")


def main(arguments: list[str] | None = None) -> int:
    """Measure; return the exit status."""
    options = _parser().parse_args(arguments)
    effort = SHORT if options.short else FULL
    configure_logs("error", False)
    described = Figure(f"machine: {machine()}", None, "", None, None, None, None)
    print(described.figure + (", a short run" if options.short else ""))
    results = [described]
    for number in options.only or FIGURES:
        began = time.perf_counter()
        module = importlib.import_module(f"benchmarks.{FIGURES[number]}")
        for figure in module.figures(effort):
            results.append(figure)
            print(line(figure), flush=True)
        print(f"  ({FIGURES[number]}: {time.perf_counter() - began:.0f} s)", file=sys.stderr)
    options.output.write_text(json.dumps([asdict(figure) for figure in results], indent=2) + "\n")
    return _verdict(results) if options.check else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed or unmeasured")
    parser.add_argument("--short", action="store_true", help="a tenth of the work: some minutes")
    parser.add_argument(
        "--only", type=int, nargs="+", choices=list(FIGURES), help=f"some figures: {FIGURES}", metavar="N"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the results go")
    return parser


def machine() -> str:
    """Describe what this runs on."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    return (
        f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()},"
        f" Python {platform.python_version()}, load before {load}"
    )


def line(figure: Figure) -> str:
    """Return what is printed of a figure."""
    mark = {True: "met", False: "MISSED", None: "-" if figure.target is None else "UNMEASURED"}[figure.met]
    values = f"ours {_number(figure.ours)} | {figure.peer} {_number(figure.peer_value)}"
    target = "" if figure.target is None else f" (target {figure.target:g})"
    return f"{mark:10} {figure.figure} {_number(figure.ratio)}{target} | {values}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _verdict(results: Iterable[Figure]) -> int:
    short = [figure for figure in results if figure.target is not None and not figure.met]
    for figure in short:
        print(f"not shown: {figure.figure} against {figure.peer}", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
