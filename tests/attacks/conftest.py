"""Attacks on the small networks of `tests/node`, under virtual time unless they need real processes.

No step of the program may keep others waiting under any of them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE),
    *(
        str(HERE.parent / room)
        for room in ("node", "central", "brokers", "gateway", "directory", "protocol", "protocol/mqtt")
    ),
]

from virtual_time import give_virtual_time, run_hostile  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time(items, HERE, run_hostile)
