"""The examples, run as people run them, beside a daemon without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from example_runs import Place


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with trio.open_nursery() as nursery:
        place = Place(tmp_path, nursery)
        yield place
        for running in place.running:
            if running.process.returncode is None:
                running.process.kill()
            with trio.CancelScope(shield=True):
                await running.process.wait()
            for stream in (running.process.stdin, running.process.stdout):
                assert stream is not None
                await trio.aclose_forcefully(stream)
        nursery.cancel_scope.cancel()
