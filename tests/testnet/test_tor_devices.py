"""Three devices of one person over a private Tor network, one of which is lost: the short form of a soak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushcast_testnet import testnet
from soak.devices import play_devices

EPOCH_SECONDS = 15


@pytest.fixture
def net(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 3, 4, "tor", EPOCH_SECONDS) as running:
        yield running


@pytest.mark.tor
@pytest.mark.processes
async def test_devices_hold_the_same_show_once_and_lose_one_that_learns_nothing(
    net: Any, tmp_path: Path
) -> None:
    described = testnet.load(net.directory)
    figures = await play_devices(described, tmp_path / "taken", 2, seed=3, progress=print, whole=False)
    assert figures.problems == []
    assert (figures.twice, figures.missing, figures.opened) == (0, 0, 0)
    assert figures.rounds == 2
    assert figures.kills >= 1
    assert figures.shown >= 1
