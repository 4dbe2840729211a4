"""Two shards over a private Tor network: who publishes and subscribes loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcast_testnet.tor.private_tor import TorNetwork
from soak.directories.figures import play
from soak.directories.place import over_tor
from soak.directories.scene import Plan

TWO_SHARDS = Plan(
    epoch=20, epochs=1, phase=5, relays=12, clients=2, pause=10.0, before=2.9,
    directories=3, liars=0, shard_size=6,
)  # fmt: skip
"""Without a change of day, which `make soak` has: a message of the day before would have 10 s to arrive."""


@pytest.mark.tor
async def test_two_shards_over_tor(tor_network: TorNetwork, tmp_path: Path) -> None:
    figures = await play(TWO_SHARDS, over_tor(tor_network, tmp_path, TWO_SHARDS.begin))
    assert figures.shards == 2
    assert (figures.lost, figures.twice, figures.gaps, figures.refused) == (0, 0, 0, 0)
    assert figures.published > 0
    assert figures.deliveries == 7 * figures.published
    assert figures.forks == figures.wrong == figures.internal_errors == 0
