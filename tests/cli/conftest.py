"""Puts this folder and that of the fake carrier on the path, for imports; and serves a daemon."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "carriers")]

from fake_daemon import FakeDaemon  # noqa: E402
from running import STATES, environment  # noqa: E402


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user whose files lie under `tmp_path`."""
    return environment(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), XDG_STATE_HOME=STATES)


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[FakeDaemon]:
    async with trio.open_nursery() as nursery:
        daemon = FakeDaemon(tmp_path / "control.sock")
        await daemon.start(nursery)
        yield daemon
        daemon.stop()
