"""Simulated networks that directories cut into shards: what is published arrives, whatever the day."""

from __future__ import annotations

import pytest

from hushcast_testnet.simulations.faults import Faults
from hushcast_testnet.simulations.overlay_simulation import simulate
from hushcast_testnet.simulations.scenario import Scenario

pytestmark = pytest.mark.slow

AN_EPOCH = 1 / 60  # of churn, which is given a minute


def test_three_directories_cut_a_network_and_all_is_delivered() -> None:
    scenario = Scenario(
        nodes=30, subscribers=3, publications=20, topics=3, depth=2, authorities=3, shard_size=10
    )
    result = simulate(scenario)
    assert (result.pairs, result.delivered, result.duplicates) == (60, 60, 0)
    costs = result.costs
    assert costs["shards"] == 4
    # Each subscription spans the 7.5 relays of a shard in the mean, not all 30: 9 subscriptions, two days.
    assert costs["installed"] < 9 * 30
    assert 0 < costs["leases"]["mean"] < 9
    assert costs["bytes_fetched"]["client"]["least"] > 0


def test_directories_that_never_cut_list_all_relays() -> None:
    result = simulate(
        Scenario(nodes=30, subscribers=2, publications=10, topics=2, authorities=1, shard_size=0)
    )
    assert result.delivered == result.pairs == 20
    assert result.costs["shards"] == 1
    assert result.costs["leases"] == {"least": 4, "mean": 4.0, "most": 4}


@pytest.mark.usefixtures("late_on_a_day")
def test_over_a_change_of_day_with_relays_that_come_and_go_nothing_is_lost_or_twice() -> None:
    result = simulate(
        Scenario(
            nodes=14,
            subscribers=2,
            publications=150,
            topics=3,
            depth=3,
            authorities=1,
            shard_size=4,
            minutes=7.0 * 60,
            faults=Faults(churn=0.03 * AN_EPOCH),
        )
    )
    assert result.costs["shards"] == 4
    assert result.virtual_seconds > 6 * 3600, "the day changed after 5.5 hours"
    assert result.receipts == 150
    assert (result.lost_with_receipt, result.duplicates) == (0, 0)
    assert result.delivered == result.pairs == 300
