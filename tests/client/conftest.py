"""Programs that use the library, under trio and under asyncio, beside a daemon without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from world import World


@pytest.fixture(params=["trio", "asyncio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def world(backend: str, tmp_path: Path) -> AsyncIterator[World]:
    async with trio.open_nursery() as nursery:
        world = World(tmp_path / "control.sock", nursery, backend)
        await world.start()
        yield world
        nursery.cancel_scope.cancel()
