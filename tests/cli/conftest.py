"""Puts this folder on the path, as tests cannot import their neighbours otherwise; and serves a daemon."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

sys.path.insert(0, str(Path(__file__).parent))

from fake_daemon import FakeDaemon


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[FakeDaemon]:
    async with trio.open_nursery() as nursery:
        daemon = FakeDaemon(tmp_path / "control.sock")
        await daemon.start(nursery)
        yield daemon
        daemon.stop()
