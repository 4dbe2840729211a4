"""Attacks on the small networks of `tests/node`, under virtual time unless they need real processes.

No step of the program may keep others waiting under any of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from virtual_time import give_virtual_time, run_hostile


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time(items, Path(__file__).parent, run_hostile)
