"""Puts this folder on the path, for imports, and has certificates made once a run.

No step of the gateway may keep others waiting in any test here, whatever its clients send.
"""

from __future__ import annotations

import sys
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from steps import run_in_short_steps

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE),
    str(HERE / "clients"),
    *(str(HERE.parent / folder) for folder in ("carriers", "cli", "node", "protocol/mqtt")),
]

from made_certificates import Certificates, make  # noqa: E402


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(f"{HERE}/") and iscoroutinefunction(getattr(item, "obj", None)):
            # Its clock stays the test's own: under one that stands still no turn ends by time.
            item.add_marker(pytest.mark.trio(run=run_in_short_steps), append=False)
