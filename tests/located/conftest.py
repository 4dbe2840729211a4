"""Tests of located feeds draw the same small worlds as those of the pure part, and talk to a fake daemon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from providing import Town


@pytest.fixture(params=["trio", "asyncio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def town(backend: str, tmp_path: Path) -> AsyncIterator[Town]:
    """A daemon with a provider beside it, and a program under one of the two."""
    async with trio.open_nursery() as nursery:
        town = Town(tmp_path, nursery, backend)
        await town.start()
        yield town
        await town.end()
        nursery.cancel_scope.cancel()
