"""Whole networks run under virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
from virtual_time import give_virtual_time


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time(items, Path(__file__).parent)
