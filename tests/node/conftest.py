"""Whole networks run under virtual time, and find their helper on the path (`--import-mode=importlib`)."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

HERE = Path(__file__).parent
SCHEDULE = int(os.environ.get("HUSHCAST_SCHEDULE", "1"))
"""Another number runs all tasks in another order, as `for n in 1 2 3; do HUSHCAST_SCHEDULE=$n pytest …`."""
sys.path.insert(0, str(HERE))


def run_in_virtual_time(*args: Any, **options: Any) -> Any:
    """Run with a clock that jumps; the seeded scheduler makes a failure replay."""
    internals = trio._core._run
    before = internals._r, internals._ALLOW_DETERMINISTIC_SCHEDULING
    internals._r, internals._ALLOW_DETERMINISTIC_SCHEDULING = random.Random(SCHEDULE), True
    try:
        return trio.run(*args, **options | {"clock": trio.testing.MockClock(autojump_threshold=0)})
    finally:
        internals._r, internals._ALLOW_DETERMINISTIC_SCHEDULING = before


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.trio(run=run_in_virtual_time), append=False)
