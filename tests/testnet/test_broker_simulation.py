"""Simulated networks of brokers: what arrives, also where root, other brokers and nodes die and come back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hushcast_cli.main import run
from hushcast_testnet.faults import Faults
from hushcast_testnet.scenario import Scenario
from hushcast_testnet.simulation import simulate

SMALL = Scenario(nodes=8, subscribers=4, publications=12, topics=2, carrier="brokers")


def test_everybody_gets_everything_once_over_the_links_of_the_tree_alone() -> None:
    result = simulate(SMALL)
    assert (result.nodes, result.pairs, result.receipts) == (8, 4 * 12, 12)
    assert result.delivered == result.pairs
    assert result.duplicates == result.lost_with_receipt == 0
    assert result.transmissions == result.ideal
    again = simulate(SMALL).as_dict()
    assert {**result.as_dict(), "seconds": 0} == {**again, "seconds": 0}


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_with_a_receipt_is_lost_where_any_die_and_come_back(seed: int) -> None:
    faults = Faults(kill=0.25, churn=0.02)
    result = simulate(replace(SMALL, nodes=12, publications=40, minutes=40, faults=faults, seed=seed))
    assert result.receipts > 30
    assert result.lost_with_receipt == result.duplicates == 0


def test_traces_tell_of_each_link_that_a_message_goes_over(tmp_path: Path) -> None:
    simulate(replace(SMALL, publications=1, topics=1, traces=tmp_path))
    seen = [
        json.loads(line)
        for path in tmp_path.glob("*.observations.jsonl")
        for line in path.read_text().splitlines()
    ]
    kinds = [line["kind"] for line in seen]
    assert (kinds.count("drop"), kinds.count("asked"), kinds.count("delivered")) == (1, 4, 4)
    brokers = {line["node"] for line in seen if line["kind"] in ("drop", "received")}
    below = [line for line in seen if line["kind"] == "received"]
    assert all(line["previous"] in brokers and line["outcome"] == "forwarded" for line in below)
    assert kinds.count("sent") == len(below) + 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--trees", "2"], "a network of brokers has none"),
        (["--proxies", "3"], "--carrier central"),
        (["--edges", "65"], "64 at most"),
        (["--subscribers", "9"], "there are only --nodes 8"),
    ],
)
def test_options_of_other_carriers_are_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = ["--carrier", "brokers", "--nodes", "8", "--subscribers", "2", "--publications", "1"]
    assert run(["testnet", "simulate", *usual, *options]) == 2
    assert said in capsys.readouterr().err
