"""Who reads an interest under layers, by colluders, fan-out and m: `python -m benchmarks.brokers.layers`.

The tables of docs/attack-lab.md. One line a cell: for each attack the percentage of honest clients' interests
read, with its interval, if words can be guessed; under which none is read of words that cannot.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
from typing import Any, get_args

from benchmarks.brokers.baseline_trials import played_baselines
from hushcast_analytics.brokers.collusion_trials import ATTACKS, Cell, played
from hushcast_protocol.brokers.privacy import Privacy, PrivacyProfile

SHARES = (0.01, 0.05, 0.1, 0.2, 0.3)
FAN_OUTS = (4, 8, 32)
LAYERS = (2, 3, 4)


def main(arguments: list[str] | None = None) -> int:
    """Play all cells that were asked for."""
    options = _parser().parse_args(arguments)
    if options.baselines:
        return _baselines(options)
    print("profile   m  fan-out  aggregation  colluding  " + "  ".join(f"{name:>18}" for name in ATTACKS))
    cells = product(options.profile, options.layers, options.fan_out, (True, False), options.colluding)
    for profile, layers, fan_out, aggregates, share in cells:
        began = time.perf_counter()
        cell = Cell(Privacy("full", layers, profile, aggregates), fan_out, share)
        rows = played(cell, options.trials, options.seed)
        named = f"{profile:9} {layers}  {fan_out:7}  {'with' if aggregates else 'without':11}  {share:9.0%}  "
        print(named + "  ".join(f"{_figure(row):>18}" for row in rows), flush=True)
        print(f"  ({time.perf_counter() - began:.0f} s)", file=sys.stderr)
        if any(row["unguessable"] for row in rows):
            print("    a word that no dictionary has was named", flush=True)
    return 0


def _baselines(options: argparse.Namespace) -> int:
    """Play the two approaches that the paper finds wanting."""
    for share in options.colluding:
        rows = played_baselines(share, options.trials, options.seed)
        print(f"{share:4.0%}  " + "; ".join(f"{row['attack']}: {_figure(row)}" for row in rows), flush=True)
        if any(row["unguessable"] for row in rows):
            print("    a word that no dictionary has was named", flush=True)
    return 0


def _figure(row: dict[str, Any]) -> str:
    mean, low, high = (100 * row[f"accuracy{end}"] for end in ("", "_low", "_high"))
    return f"{mean:.2f} ({low:.2f}–{high:.2f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.brokers.layers", description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000, help="in each cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--profile", nargs="+", choices=get_args(PrivacyProfile), default=["paper", "hardened"]
    )
    parser.add_argument("--layers", nargs="+", type=int, choices=LAYERS, default=LAYERS)
    parser.add_argument("--fan-out", nargs="+", type=int, default=FAN_OUTS)
    parser.add_argument("--colluding", nargs="+", type=float, default=SHARES)
    parser.add_argument("--baselines", action="store_true", help="`hash` and `group` instead")
    return parser


if __name__ == "__main__":
    sys.exit(main())
