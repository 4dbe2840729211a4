"""What applications get runs under virtual time here, over the fake carrier of `tests/carriers`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / folder) for folder in ("carriers", "cli", "node")]

from virtual_time import give_virtual_time  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time(items, HERE)
