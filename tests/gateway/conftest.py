"""Has certificates made once a run.

No step of the gateway may keep others waiting in any test here, whatever its clients send.
"""

from __future__ import annotations

from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from made_certificates import Certificates, make
from steps import run_in_short_steps

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(f"{HERE}/") and iscoroutinefunction(getattr(item, "obj", None)):
            # Its clock stays the test's own: under one that stands still no turn ends by time.
            item.add_marker(pytest.mark.trio(run=run_in_short_steps), append=False)
