"""Whole networks run under virtual time, and find their helpers on the path (`--import-mode=importlib`)."""

from __future__ import annotations

import sys
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "node"), str(HERE.parent / "protocol")]

from virtual_time import give_virtual_time  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time([item for item in items if iscoroutinefunction(getattr(item, "obj", None))], HERE)
