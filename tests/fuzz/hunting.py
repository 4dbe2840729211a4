"""The hunt: gives a target its inputs, holds time and memory to a bound, and keeps what was found."""

from __future__ import annotations

import hashlib
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

from fuzzing import WATCHED, Target
from steps import BUDGET, Moves

HANG = 20.0  # seconds for one input; the slowest took 0.2 on a busy machine
slower = 1.0  # times that code takes here what it takes in a daemon
MEMORY = 1 << 30  # bytes that a target may take on top of what the process has
MAX_GROWN = 100  # megabytes by which a process may have grown at the end: 250,000 inputs leave 40 at most


class HangError(BaseException):
    """An input took too long. Not an `Exception`, so that no target answers with it."""


class FindingError(AssertionError):
    """An input did what none may do."""

    def __init__(self, target: str, data: bytes, reason: str) -> None:
        super().__init__(f"{target}: {reason}\n  input, {len(data)} bytes: {data[:200].hex()}")
        self.target, self.data, self.reason = target, data, reason


@dataclass(frozen=True)
class Result:
    """What a hunt came to."""

    target: str
    inputs: int
    moves: int
    seconds: float
    megabytes: float
    """By which the process grew."""


def try_one(target: Target, data: bytes) -> int:
    """Give one input; return how many moves it had; raise `FindingError` for whatever it must not do."""
    try:
        with _limited_time(), _short_moves() as moves:
            target.take(data)
    except (Exception, HangError, RecursionError) as error:
        raise FindingError(target.name, data, f"{type(error).__name__}: {error}") from error
    return max(1, moves.count)


def hunt(target: Target, seed: int, inputs: int, moves: int = 0) -> Result:
    """Give the corpus, and damaged inputs until there were that many, of that many moves.

    The same seed gives the same inputs.
    """
    random = Random(f"{target.name} {seed}")
    corpus, given, moved = target.corpus, 0, 0
    before, began = size_of_process(), time.perf_counter()
    with limited_memory():
        for data in corpus:
            try_one(target, data)
        while given < inputs or moved < moves:
            moved += try_one(target, target.mutate(random, corpus))
            given += 1
    grown = (size_of_process() - before) / 1e6
    if grown > MAX_GROWN:
        raise FindingError(target.name, b"", f"{grown:,.0f} MB more after {given:,} inputs: it keeps of each")
    return Result(target.name, given, moved, time.perf_counter() - began, grown)


def keep(finding: FindingError, folder: Path) -> Path:
    """Write a finding as a file of hex digits, with its reason beside it; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{finding.target}-{hashlib.sha256(finding.data).hexdigest()[:12]}.hex"
    file.write_text(finding.data.hex() + "\n")
    file.with_suffix(".txt").write_text("".join(traceback.format_exception(finding)))
    return file


@contextmanager
def limited_memory() -> Iterator[None]:
    """Make what would take over `MEMORY` more than now a `MemoryError`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = size_of_process() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (bound if hard == -1 else min(bound, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _limited_time() -> Iterator[None]:
    def too_long(signum: int, frame: FrameType | None) -> None:
        raise HangError(f"it took over {HANG} seconds")

    old = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@contextmanager
def _short_moves() -> Iterator[Moves]:
    """Hold each move of an input, which a daemon makes in one step, to what a step may take."""
    moves = Moves()
    WATCHED.append(moves)
    try:
        yield moves
    finally:
        WATCHED.pop()
    moves.next(begins=False)
    allowed = BUDGET * slower
    assert moves.longest < allowed, (
        f"a step took {moves.longest:.3f} s of a processor; {allowed:.3f} are allowed"
    )


def size_of_process() -> int:
    """Return the bytes of address space that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
