"""`make fuzz`: hostile inputs for every decoder and every machine; a table, and exit code 1 on a finding.

python tests/fuzz                          a million inputs, a fifth led by coverage (atheris)
python tests/fuzz --inputs 50000 --only frame roster
python tests/fuzz --inputs 0 --moves 1000000 --only hop
python tests/fuzz --replay findings/frame-0123456789ab.hex
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "tools")]

import helper_folders  # noqa: E402, F401
from hunting import FindingError, Result, hunt, keep, try_one  # noqa: E402

FINDINGS = Path("findings")
GUIDED = 0.2  # share of inputs led by coverage, where atheris is there: each takes some three times as long


def main() -> int:
    """Hunt, or replay; return the exit code."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000, help="inputs for all targets together")
    parser.add_argument("--moves", type=int, default=0, help="and on until each target had so many moves")
    parser.add_argument("--seed", type=int, default=1, help="other seeds give other inputs")
    parser.add_argument("--only", nargs="+", metavar="TARGET", help="these targets alone")
    parser.add_argument(
        "--seeded", action="store_true", help="without coverage to lead, as where atheris is missing"
    )
    parser.add_argument(
        "--in-process", action="store_true", help="seeded, and in one process: for coverage.py"
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="give one finding to its target again")
    parser.add_argument("--one", nargs=2, metavar=("TARGET", "MODE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay)
    if options.one:
        return one(*options.one, options.seed, options.inputs, options.moves)
    return everything(options)


def everything(options: argparse.Namespace) -> int:
    """Hunt target by target, each in processes of its own; print the table."""
    from targets import TARGETS

    unknown = set(options.only or ()) - TARGETS.keys()
    if unknown:
        print(
            f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}", file=sys.stderr
        )
        return 2
    chosen = [target for name, target in TARGETS.items() if not options.only or name in options.only]
    has_atheris = importlib.util.find_spec("atheris") is not None
    if not has_atheris:
        print("atheris is not installed: inputs are mutated from real ones, without coverage to lead")
    led = GUIDED if has_atheris and not options.seeded and not options.in_process else 0.0
    weights = sum(target.weight for target in chosen)
    hunts, found = 0, 0
    print(f"{'target':20} {'mode':8} {'inputs':>9} {'moves':>11} {'moves/s':>9} {'MB more':>8}")
    for target in chosen:
        for mode, share in (("seeded", 1 - led), ("guided", led)):
            inputs = math.ceil(options.inputs * share * target.weight / weights)
            moves = math.ceil(options.moves * share)
            if inputs or moves:
                way = one if options.in_process else apart
                hunts += 1
                found += way(target.name, mode, options.seed, inputs, moves) != 0
    print(f"{hunts} hunts, {found or 'none'} with a finding")
    return 1 if found else 0


def apart(name: str, mode: str, seed: int, inputs: int, moves: int) -> int:
    """Hunt in a process of its own; what ends that process is a finding, too."""
    command = [sys.executable, str(HERE), "--one", name, mode, "--seed", str(seed)]
    command += ["--inputs", str(inputs), "--moves", str(moves)]
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="hushcast-fuzz-", dir=memory) as scratch:
        around = {**os.environ, "TMPDIR": scratch}  # what a process leaves there goes with it
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", env=around)
    if done.returncode not in (0, 1):
        print(f"{name:20} {mode:8} FINDING: the process ended with {done.returncode}\n{done.stderr[-2000:]}")
    return done.returncode


def one(name: str, mode: str, seed: int, inputs: int, moves: int) -> int:
    """Hunt in one target and in this process; tell what came of it."""

    def tell(outcome: Result | FindingError) -> None:
        if isinstance(outcome, FindingError):
            file = keep(outcome, FINDINGS)
            print(f"{name:20} {mode:8} FINDING: {outcome.reason[:200]}")
            print(f"  again with: make fuzz REPLAY={file}", flush=True)
        else:
            speed = outcome.moves / max(outcome.seconds, 1e-9)
            done = f"{outcome.inputs:9,} {outcome.moves:11,} {speed:9,.0f} {outcome.megabytes:8.1f}"
            print(f"{name:20} {mode:8} {done}", flush=True)

    if mode == "guided":
        from guided import hunt_guided

        hunt_guided(name, seed, inputs, moves, tell)
    from targets import TARGETS

    try:
        tell(hunt(TARGETS[name], seed, inputs, moves))
    except FindingError as finding:
        tell(finding)
        return 1
    return 0


def replay(file: Path) -> int:
    """Give a kept input to the target that its file is named after."""
    from targets import TARGETS

    target = TARGETS[file.stem.rpartition("-")[0]]
    data = bytes.fromhex(file.read_text())
    try:
        try_one(target, data)
    except FindingError as finding:
        raise finding from finding.__cause__
    print(f"{target.name} takes these {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
