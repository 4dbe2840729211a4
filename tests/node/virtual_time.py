"""Runs tests of whole networks under a clock that jumps, in an order of tasks that replays."""

from __future__ import annotations

import inspect
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from simulated_sleep import sleep_by_calls
from steps import run_in_short_steps

from hushcast_testnet.simulations.overlay_simulation import rare_collections

SCHEDULE = int(os.environ.get("HUSHCAST_SCHEDULE", "1"))
"""Another number runs all tasks in another order, as `for n in 1 2 3; do HUSHCAST_SCHEDULE=$n pytest …`."""


def run_in_virtual_time(
    *args: Any, quiet: float = 0.0, run: Callable[..., Any] = trio.run, **options: Any
) -> Any:
    """Run with a clock that jumps; the seeded scheduler makes a failure replay.

    It jumps once nothing has happened for `quiet` real seconds: with real sockets more than none.
    """
    internals = trio._core._run
    before = internals._r, internals._ALLOW_DETERMINISTIC_SCHEDULING
    internals._r, internals._ALLOW_DETERMINISTIC_SCHEDULING = random.Random(SCHEDULE), True
    try:
        clock = trio.testing.MockClock(autojump_threshold=quiet)
        with rare_collections(), sleep_by_calls(clock):
            return run(*args, **options | {"clock": clock})
    finally:
        internals._r, internals._ALLOW_DETERMINISTIC_SCHEDULING = before


def run_hostile(*args: Any, **options: Any) -> Any:
    """Run in virtual time, and fail if a step of the program took too long."""
    return run_in_virtual_time(*args, run=run_in_short_steps, **options)


def give_virtual_time(
    items: list[pytest.Item], folder: Path, run: Callable[..., Any] = run_in_virtual_time
) -> None:
    """Have the tests of a folder run in virtual time, all but those that start real processes or a tor."""
    for item in items:
        if not str(item.path).startswith(f"{folder}/"):  # ten thousand items, and six folders that ask
            continue
        function = getattr(item, "obj", None)
        function = getattr(getattr(function, "hypothesis", None), "inner_test", function)
        is_async = inspect.iscoroutinefunction(function)
        if is_async and not (item.get_closest_marker("processes") or item.get_closest_marker("tor")):
            is_hostile = "hostile" in item.path.name
            item.add_marker(pytest.mark.trio(run=run_hostile if is_hostile else run), append=False)
