"""Simulated networks of brokers under layers: what arrives, and that their traces hold what attacks go by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hushcast_analytics.brokers.layer_attacks import played
from hushcast_cli.main import run
from hushcast_cli.testnets import broker_options
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.full.layers import MAX_LAYERS, MIN_LAYERS
from hushcast_protocol.brokers.privacy import DEFAULT_LAYERS, Privacy
from hushcast_testnet.simulations.broker_trees import fanned, small
from hushcast_testnet.simulations.overlay_simulation import simulate
from hushcast_testnet.simulations.scenario import Scenario

FIELDS = ("kind", "node", "own", "other", "key", "path", "filter", "child", "show")


def lines(directory: Path, kind: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in directory.glob(f"*.{kind}.jsonl")
        for line in path.read_text().splitlines()
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "privacy", [Privacy("full", 2, "paper"), Privacy("full", 3)], ids=lambda one: one.text
)
def test_traces_have_all_that_brokers_could_open_together(privacy: Privacy, tmp_path: Path) -> None:
    scenario = Scenario(9, 3, 4, 4, carrier="brokers", fan_out=3, privacy=privacy, traces=tmp_path)
    result = simulate(scenario)
    assert result.delivered == result.pairs == 12
    assert result.duplicates == result.lost_with_receipt == 0
    assert result.transmissions == result.ideal
    truths = lines(tmp_path, "truth")
    assert {row["profile"] for row in truths if row["kind"] == "started"} == {privacy.text}
    wanted = {(row["own"], row["element"]) for row in truths if row["kind"] == "wanted"}
    assert len(wanted) == 12
    (root,) = {row["node"] for row in truths if row.get("role") == "root"}
    seen = [row for row in lines(tmp_path, "observations") if row["node"] != root]
    rows = [{name: row.get(name) for name in FIELDS} for row in seen]
    found = set(played(privacy.action, rows, [bytes.fromhex(element) for _, element in wanted]))
    for attack in ("consecutive", "broker-and-child"):
        named = {(one.owner.hex(), one.element.hex()) for one in found if one.attack == attack}
        assert named == wanted, attack  # all but the root collude
    alone = [{**row} for row in rows if row["node"] == rows[0]["node"]]
    assert not [one for one in played(privacy.action, alone, []) if one.attack != "dictionary"]
    opened = {(row["message"], row["inside"]) for row in seen if row["kind"] == "opened"}
    sent = {row["message"] for row in seen if row["kind"] == "sent"}
    assert {outside for outside, _ in opened} <= sent
    assert {inside for _, inside in opened} == {
        row["message"] for row in truths if row["kind"] == "delivered"
    }


@pytest.mark.slow
@pytest.mark.parametrize("aggregates", [True, False])
def test_a_broker_that_makes_up_a_child_reads_alone_where_brokers_aggregate(
    aggregates: bool, tmp_path: Path
) -> None:
    privacy = Privacy("full", 3, aggregates=aggregates)
    simulate(Scenario(4, 2, 2, 2, carrier="brokers", fan_out=2, privacy=privacy, traces=tmp_path))
    truths = lines(tmp_path, "truth")
    made_up = {row["node"]: row["by"] for row in truths if row["kind"] == "invented"}
    brokers = {row["node"] for row in truths if row.get("role") in ("inner", "edge", "broker")}
    assert set(made_up.values()) == brokers
    wanted = {(row["own"], row["element"]) for row in truths if row["kind"] == "wanted"}
    found = set()
    for broker in brokers:
        seen = [
            row for row in lines(tmp_path, "observations") if made_up.get(row["node"], row["node"]) == broker
        ]
        assert [row for row in seen if row["node"] in made_up and row["kind"] == "agreed"]
        rows = [
            {**{name: row.get(name) for name in FIELDS}, "node": broker, "made": row["node"] in made_up}
            for row in seen
        ]
        found |= {one for one in played(privacy.action, rows, []) if one.attack == "made-up-child"}
    assert {(one.owner.hex(), one.element.hex()) for one in found} == (wanted if aggregates else set())


@pytest.mark.slow
def test_topics_may_be_unequally_popular(tmp_path: Path) -> None:
    simulate(Scenario(4, 1, 60, 3, carrier="brokers", zipf=True, traces=tmp_path))
    published = [row["topic"] for row in lines(tmp_path, "truth") if row["kind"] == "published"]
    first, second, third = (published.count(f"topic {number}") for number in range(3))
    assert first > second > third > 0


def test_options_have_the_bounds_of_the_protocol() -> None:
    assert (broker_options.FEWEST, broker_options.MOST) == (MIN_LAYERS, MAX_LAYERS)
    assert broker_options.USUAL == DEFAULT_LAYERS


@pytest.mark.slow
def test_in_a_community_of_all_everybody_gets_everything() -> None:
    result = simulate(Scenario(6, 3, 4, 2, carrier="brokers", fan_out=3, privacy=Privacy("community")))
    assert result.delivered == result.pairs == 12
    assert result.transmissions == result.ideal


def test_a_tree_is_as_high_as_it_takes_and_as_there_are_layers() -> None:
    shape = fanned(20, 4, 2)
    names = [name for name, _, _ in shape.brokers]
    assert names == ["root", "inner-1-1", "inner-1-2", *(f"edge-{n}" for n in range(1, 6))]
    assert shape.brokers[-1] == ("edge-5", "edge", "inner-1-2")
    assert [shape.edges.count(f"edge-{n}") for n in range(1, 6)] == [4] * 5
    assert [role for _, role, _ in fanned(3, 4, 3).brokers] == ["root", "inner", "inner", "edge"]
    assert len(set(small(8, 3).edges)) == 3
    with pytest.raises(UsageError, match="1024"):
        fanned(100_000, 8, 2)


COUNTS = ("--nodes", "8", "--subscribers", "2", "--publications", "4")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--carrier", "overlay", *COUNTS, "--privacy", "full"], "--carrier brokers"),
        (["--layers", "2"], "--privacy full"),
        (["--no-aggregation"], "--privacy full"),
        (["--aggregation"], "--privacy full"),
        (["--carrier", "central", *COUNTS, "--zipf"], "--carrier brokers"),
        (["--profile", "paper"], "--privacy full"),
        (["--privacy", "full", "--k", "3"], "no broker reads conditions"),
        (["--privacy", "hash", "--k", "3"], "whole topics alone"),
        (["--nodes", "5"], "give one of the two"),
        (["--fan-out", "4", "--edges", "5"], "give no --edges"),
        (["--fan-out", "65"], "64 below one"),
    ],
)
def test_options_that_contradict_each_other(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["testnet", "simulate", "--carrier", "brokers", "--clients", "8", *options]) == 2
    assert said in capsys.readouterr().err
