"""Measures and draws the page. From the root: `python -m benchmarks.purpose_experiments DIR`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec
import trio

from benchmarks.bench import FULL, SHORT, machine
from benchmarks.purpose_experiments import inside, tables, verdicts
from benchmarks.purpose_experiments.page import Results, files
from hushcast_runtime.logs import configure_logs


def main(arguments: list[str] | None = None) -> int:
    """Write the page, its pictures and `results.json`; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.purpose_experiments", description=__doc__)
    parser.add_argument("directory", type=Path, help="where index.html, pictures and results.json go")
    parser.add_argument("--short", action="store_true", help="a tenth of the work: does it run, not how fast")
    parser.add_argument("--draw", action="store_true", help="draw what results.json there holds, anew")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, help="measure these, and keep the rest of results.json"
    )
    options = parser.parse_args(arguments)
    configure_logs("error", False)
    options.directory.mkdir(parents=True, exist_ok=True)
    kept = options.directory / "results.json"
    results = Results()
    if options.draw or (options.only and kept.exists()):
        results = msgspec.json.decode(kept.read_bytes(), type=Results)
    for part in [] if options.draw else options.only or PARTS:
        results = PARTS[part](results, options.short)
        kept.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    for name, content in files(results).items():
        (options.directory / name).write_text(content)
    return 0


def _tables(results: Results, is_short: bool) -> Results:
    described = machine()
    rows = trio.run(tables.measured, SHORT if is_short else FULL)
    return msgspec.structs.replace(results, machine=described, rows=rows, clients=tables.CLIENTS)


def _growth(results: Results, is_short: bool) -> Results:
    return msgspec.structs.replace(results, sweeps=inside.swept(SHORT if is_short else FULL))


def _large(results: Results, is_short: bool) -> Results:
    many = inside.MANY // 10 if is_short else inside.MANY
    return msgspec.structs.replace(results, large=inside.large(SHORT if is_short else FULL, many), many=many)


def _verdicts(results: Results, is_short: bool) -> Results:
    size = verdicts.Size(topics=100, clients=10, rounds=2) if is_short else verdicts.Size()
    return msgspec.structs.replace(results, verdicts=trio.run(verdicts.judged, size), size=size)


PARTS = {"tables": _tables, "growth": _growth, "large": _large, "verdicts": _verdicts}


if __name__ == "__main__":
    sys.exit(main())
