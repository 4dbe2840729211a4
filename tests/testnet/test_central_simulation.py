"""Simulated central systems: what arrives, also where server, proxies and nodes die and come back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hushcast_testnet.simulations.faults import Faults
from hushcast_testnet.simulations.overlay_simulation import simulate
from hushcast_testnet.simulations.scenario import THIS_MACHINE, Scenario, SimulationResult

pytestmark = pytest.mark.slow

SMALL = Scenario(nodes=8, subscribers=4, publications=12, topics=2, carrier="central")


def line(result: SimulationResult) -> dict[str, float]:
    return {name: value for name, value in result.as_dict().items() if name not in THIS_MACHINE}


@pytest.mark.parametrize("profile", ["hardened", "paper"])
def test_everybody_gets_everything_once_and_the_same_seed_gives_the_same(profile: str) -> None:
    result = simulate(replace(SMALL, profile=profile))
    assert (result.nodes, result.pairs, result.receipts) == (8, 4 * 12, 12)
    assert result.delivered == result.pairs
    assert result.duplicates == result.lost_with_receipt == 0
    assert result.transmissions == result.ideal == 12 * (1 + 2 * 4)
    assert line(result) == line(simulate(replace(SMALL, profile=profile)))


def test_more_proxies_share_the_work() -> None:
    result = simulate(replace(SMALL, proxies=5))
    assert result.delivered == result.pairs
    assert result.duplicates == 0


def test_nothing_is_lost_where_server_and_proxies_are_killed_at_once() -> None:
    result = simulate(replace(SMALL, faults=Faults(kill=0.25)))
    assert result.delivered == result.pairs
    assert result.duplicates == result.lost_with_receipt == 0
    assert result.repaired["pairs"] == result.repaired["delivered"] == 4 * 6


@pytest.mark.parametrize("profile", ["hardened", "paper"])
def test_nothing_is_lost_where_all_come_and_go(profile: str) -> None:
    faults = Faults(churn=0.05)
    result = simulate(replace(SMALL, profile=profile, publications=30, faults=faults, minutes=30))
    assert result.delivered == result.pairs == 120
    assert result.duplicates == 0


def test_traces_keep_what_server_and_proxies_saw_apart_from_the_truth(tmp_path: Path) -> None:
    simulate(replace(SMALL, traces=tmp_path))
    seen = {
        name: [
            json.loads(text) for text in (tmp_path / f"{name}.observations.jsonl").read_text().splitlines()
        ]
        for name in ("server", "publications-1", "deliveries-1")
    }
    kinds = {name: {record["kind"] for record in records} for name, records in seen.items()}
    assert kinds == {
        "server": {"introduced", "registered", "handed", "dispatched"},
        "publications-1": {"introduced", "handed"},
        "deliveries-1": {"introduced", "registered", "dispatched"},
    }
    assert not any("topic" in record for records in seen.values() for record in records)
    known = (tmp_path / "client-0.truth.jsonl").read_text()
    assert '"role":"client"' in known
