"""Puts this folder on the path, for imports, and has certificates made once a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

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
