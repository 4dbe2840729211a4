"""Tomography in numbers: `python -m benchmarks.tomography [--short] [--seed N] [--only PART]`.

Prints JSON, the same for the same seed. All of it takes a minute of CPU; `--short` a second or two.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.tomography import bootstrap, questions, sybils
from benchmarks.tomography.world import FULL, SHORT, World

PARTS = {"questions": questions.run, "bootstrap": bootstrap.run, "sybils": sybils.run}


def main() -> int:
    """Run the parts asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a small world: does it run, not what comes out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--output", type=Path, help="where the results go, besides standard output")
    given = parser.parse_args()
    size = SHORT if given.short else FULL
    found = {name: PARTS[name](World(size, given.seed)) for name in given.only}
    text = json.dumps(found, indent=2)
    if given.output is not None:
        given.output.write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
