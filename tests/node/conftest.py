"""Whole networks run under virtual time, and find their helper on the path (`--import-mode=importlib`)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hushcast_protocol.overlay.profile import HARDENED, Root

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from virtual_time import give_virtual_time  # noqa: E402


@pytest.fixture(params=["mailbox", "host"])
def both_roots(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test in a network of each root."""
    monkeypatch.setattr("small_network.HARDENED", replace(HARDENED, root=Root(request.param)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    give_virtual_time(items, HERE)
