"""Measures steps in tests: whatever a stranger sends, none may take over 50 ms of a processor."""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import trio

from hushcast_runtime import environment
from hushcast_runtime.processes.steps import LONG, place_of

T = TypeVar("T")

ROOT = Path(__file__).parents[1]
UNIT = 0.004  # seconds of a processor that `_unit` takes where the figures of docs/ were measured


def _unit() -> float:
    """Return what a fixed piece of work takes here: half of it Python, half of it hashing."""
    began = time.thread_time()
    table: dict[int, bytes] = {}
    for number in range(6000):
        table[number * 7919 % 6007] = hashlib.blake2b(number.to_bytes(8, "big")).digest()
    return time.thread_time() - began


BUDGET = LONG * max(1.0, min(_unit() for _ in range(5)) / UNIT)
"""Seconds of a processor that a step may take on this machine."""


class _NotCounted:
    """Adds up what is no step's own work.

    That is collecting garbage, of which there is as much as all tests before have left, and what simulated
    daemons compute in the thread of the loop, real ones in another.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = 0.0

    def collect(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase == "start":
            self._since = time.thread_time()
        else:
            self.seconds += time.thread_time() - self._since

    def run_here(self, function: Callable[..., T], *args: Any) -> T:
        began = _worked()
        try:
            return function(*args)
        finally:
            self.seconds += _worked() - began


_not_counted = _NotCounted()
gc.callbacks.append(_not_counted.collect)
environment.run_here = _not_counted.run_here


def _worked() -> float:
    return time.thread_time() - _not_counted.seconds


class Moves:
    """Measures and counts what a machine is put through from outside: each move is a step of some task."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.count = 0
        self._began = _worked()

    def next(self, begins: bool = True) -> None:
        """End a move, and begin the next, unless it was the last."""
        now = _worked()
        self.longest = max(self.longest, now - self._began)
        self._began = now
        self.count += begins


@contextmanager
def one_step() -> Iterator[None]:
    """Fail if the block takes longer than a step may."""
    began = _worked()
    yield
    took = _worked() - began
    assert took < BUDGET, (
        f"one step took {took * 1000:.0f} ms of a processor; {BUDGET * 1000:.0f} are allowed"
    )


class Steps(trio.abc.Instrument):
    """Measures every step of every task of ours; those of tests are the attacker's own work."""

    def __init__(self) -> None:
        self.longest, self.place = 0.0, ""
        self._began = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = _worked()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        took = _worked() - self._began
        if took > self.longest and _is_ours(task):
            self.longest, self.place = took, place_of(task)

    def check(self) -> None:
        """Fail if a step took too long."""
        assert self.longest < BUDGET, (
            f"a step that ended at {self.place} took {self.longest * 1000:.0f} ms of a processor;"
            f" {BUDGET * 1000:.0f} are allowed"
        )


def run_in_short_steps(*args: Any, instruments: Sequence[Any] = (), **options: Any) -> Any:
    """Run as `trio.run`, and fail if a step of the program took too long."""
    steps = Steps()
    result = trio.run(*args, instruments=[*instruments, steps], **options)
    steps.check()
    return result


def _is_ours(task: trio.lowlevel.Task) -> bool:
    code = getattr(task.coro, "cr_code", None)
    path = Path(code.co_filename) if code else ROOT / "tests"
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] not in ("tests", ".venv")
