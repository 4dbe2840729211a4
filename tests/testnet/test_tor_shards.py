"""Two shards over a private Tor network, and a change of day: who publishes and subscribes loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcast_testnet.authorities.figures import play
from hushcast_testnet.authorities.place import over_tor
from hushcast_testnet.authorities.scene import Plan
from hushcast_testnet.private_tor import TorNetwork

TWO_SHARDS = Plan(
    epoch=60, epochs=2, phase=23, relays=12, clients=2, pause=20.0, before=2.4,
    directories=3, liars=0, shard_size=6,
)  # fmt: skip
"""Mailboxes and trees of two days, one after the other.

A message has half an epoch after its day to arrive: less than half a minute is too little over Tor on a busy
machine.
"""


@pytest.mark.tor
async def test_a_change_of_day_over_tor(tor_network: TorNetwork, tmp_path: Path) -> None:
    figures = await play(TWO_SHARDS, over_tor(tor_network, tmp_path, TWO_SHARDS.begin))
    assert figures.shards == 2
    assert (figures.lost, figures.twice, figures.gaps, figures.refused) == (0, 0, 0, 0)
    assert figures.published > 0
    assert figures.deliveries == 7 * figures.published
    assert figures.forks == figures.wrong == figures.internal_errors == 0
