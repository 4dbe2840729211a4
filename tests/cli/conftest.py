"""Serves a daemon on a fake carrier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from fake_daemon import FakeDaemon
from running import STATES, environment


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
