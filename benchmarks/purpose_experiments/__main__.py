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
    options = parser.parse_args(arguments)
    configure_logs("error", False)
    options.directory.mkdir(parents=True, exist_ok=True)
    kept = options.directory / "results.json"
    if options.draw:
        results = msgspec.json.decode(kept.read_bytes(), type=Results)
    else:
        results = measured(options.short)
        kept.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    for name, content in files(results).items():
        (options.directory / name).write_text(content)
    return 0


def measured(is_short: bool) -> Results:
    """Measure everything; some ten minutes, a short run one or two."""
    effort = SHORT if is_short else FULL
    size = verdicts.Size(topics=100, clients=10, rounds=2) if is_short else verdicts.Size()
    many = inside.MANY // 10 if is_short else inside.MANY
    described = machine()
    return Results(
        described,
        trio.run(tables.measured, effort),
        inside.swept(effort),
        inside.large(effort, many),
        trio.run(verdicts.judged, size),
        size,
        tables.CLIENTS,
        many,
    )


if __name__ == "__main__":
    sys.exit(main())
