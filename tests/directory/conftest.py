"""The directory runs under virtual time, and finds its helper on the path (`--import-mode=importlib`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


def run_in_virtual_time(*args: Any, **options: Any) -> Any:
    return trio.run(*args, **options | {"clock": trio.testing.MockClock(autojump_threshold=0)})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(f"{HERE}/"):
            item.add_marker(pytest.mark.trio(run=run_in_virtual_time), append=False)
