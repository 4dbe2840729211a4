"""A daemon's environment: time, randomness and worker threads, all injected."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio

from hushcast_protocol.base.crypto.secrets import Randomness, below, sample, uniform

LOOK_EVERY = 60.0  # seconds between looks at the clock of a task that sleeps until a moment

T = TypeVar("T")

_BOOTED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Compute(Protocol):
    """Runs a function that takes long, without stalling the scheduler."""

    def __call__(self, function: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Return what `function(*args)` returns."""


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Environment:
    """Unix time in seconds, random bytes, and worker threads."""

    now: Callable[[], float]
    randomness: Randomness
    compute: Compute
    elapsed: Callable[[], float] = trio.current_time
    """Seconds of a clock that nobody sets, from any beginning."""
    is_certain: Callable[[], bool] = _always
    """Whether `now` may be trusted so far that what is too old is deleted (`DaemonClock`)."""
    look_every: float = LOOK_EVERY
    """Seconds between looks at `now` of a task that sleeps until a moment: it may be set meanwhile."""

    async def sleep_until(self, moment: float) -> None:
        """Sleep until Unix time reaches `moment`, also if the clock is set or the machine sleeps."""
        while (left := moment - self.now()) > 0:  # noqa: ASYNC110 - no event tells of a clock being set
            await trio.sleep(min(left, self.look_every))

    def uniform(self, low: float, high: float) -> float:
        """Draw a number between `low` and `high`."""
        return uniform(self.randomness, low, high)

    def sample(self, items: list[T], count: int) -> list[T]:
        """Draw `count` different items, or all if there are fewer, in random order."""
        return sample(self.randomness, items, count)

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 to `bound` - 1."""
        return below(self.randomness, bound)

    def isolation(self) -> str:
        """Draw an isolation name for a circuit of its own (`Transport.connect`)."""
        return self.randomness(16).hex()


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    return await trio.to_thread.run_sync(function, *args)


def system_environment(skew: Path | None = None) -> Environment:
    """Return the environment of a real daemon.

    `skew` is for testnets: a file with the seconds by which this daemon's clock is wrong. It is read at every
    look at the clock, so that writing it sets the clock of a running daemon.
    """
    if skew is None:
        return Environment(time.time, os.urandom, _in_thread, _since_boot)
    return Environment(lambda: time.time() + _seconds_in(skew), os.urandom, _in_thread, _since_boot)


def _since_boot() -> float:
    """Return the seconds since the machine started, including suspend where the platform counts it."""
    return time.clock_gettime(_BOOTED)


def _seconds_in(file: Path) -> float:
    try:
        return float(file.read_text())
    except (FileNotFoundError, ValueError):  # not written yet, or being written
        return 0.0


def run_here(function: Callable[..., T], *args: Any) -> T:
    """Compute in the loop's thread what a real daemon computes in another: so do simulated ones."""
    return function(*args)


def simulated_environment(seed: int | str, start: float = 0.0, look_every: float = math.inf) -> Environment:
    """Return an environment under trio's clock that replays from a seed; not for real daemons.

    Its clock shows `start` and the seconds of trio's. To look at one that nobody sets took a sixth of the
    time of simulated days; give `look_every` where it is set.
    """
    source = random.Random(f"hushcast simulation {seed}")  # noqa: S311 - must replay; no secret comes of it

    async def compute(function: Callable[..., T], *args: Any) -> T:
        await trio.lowlevel.checkpoint()
        return run_here(function, *args)

    return Environment(lambda: start + trio.current_time(), source.randbytes, compute, look_every=look_every)
