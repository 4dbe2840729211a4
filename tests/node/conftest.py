"""Whole networks run under virtual time, and find their helper on the path (`--import-mode=importlib`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from virtual_time import give_virtual_time  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time(items, HERE)
