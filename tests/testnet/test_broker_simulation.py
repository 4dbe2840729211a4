"""Simulated networks of brokers: what arrives, also where root, other brokers and nodes die and come back."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hushcast_cli.main import run
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.privacy import Privacy, PrivacyModel
from hushcast_testnet.inventory import CarrierName
from hushcast_testnet.simulations.faults import Faults
from hushcast_testnet.simulations.overlay_simulation import simulate
from hushcast_testnet.simulations.scenario import THIS_MACHINE, Scenario

SMALL = Scenario(nodes=8, subscribers=4, publications=12, topics=2, carrier="brokers")


@pytest.mark.slow
def test_everybody_gets_everything_once_over_the_links_of_the_tree_alone() -> None:
    result = simulate(SMALL)
    assert (result.nodes, result.pairs, result.receipts) == (8, 4 * 12, 12)
    assert result.delivered == result.pairs
    assert result.duplicates == result.lost_with_receipt == 0
    assert result.transmissions == result.ideal
    machine = dict.fromkeys(THIS_MACHINE, 0)
    assert {**result.as_dict(), **machine} == {**simulate(SMALL).as_dict(), **machine}


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("otherwise", ["wait", "generalise", "bogus"])
def test_what_subscribers_hide_among_comes_where_enough_want_it(otherwise: Fallback, tmp_path: Path) -> None:
    terms = AnonymityTerms(3, AnonymityCondition.SOURCE, otherwise)
    # Who comes to which edge broker decides whether a wider filter can be found: with this seed one can.
    result = simulate(
        Scenario(
            *(12, 10, 20),
            seed=16,
            carrier="brokers",
            traces=tmp_path,
            terms=terms,
            tomography=otherwise == "bogus",
        )
    )
    hidden, kinds = result.hidden, Counter[str]()
    for path in tmp_path.glob("edge-*.observations.jsonl"):
        for line in map(json.loads, path.read_text().splitlines()):
            kinds[line["kind"]] += line.get("sources") != 0
            assert line["kind"] != "asked" or (line["k"], line["otherwise"]) == (3, otherwise)
    assert hidden["subscriptions"] == kinds["asked"] == 10
    assert (kinds["bogus"] > 0) is (otherwise == "bogus")
    assert hidden["shown"] + hidden["nothing"] == 10
    assert 0 < result.delivered <= result.pairs
    assert (result.delivered == result.pairs) is (hidden["nothing"] == 0)
    assert (hidden["nothing"] == 0) is (otherwise != "wait")
    assert result.transmissions == result.ideal or otherwise != "bogus"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["hash", "group"])
def test_what_the_paper_finds_wanting_makes_traces_for_the_lab(model: PrivacyModel, tmp_path: Path) -> None:
    result = simulate(replace(SMALL, privacy=Privacy(model), traces=tmp_path))
    assert result.delivered == result.pairs
    lines = [json.loads(one) for one in (tmp_path / "root.truth.jsonl").read_text().splitlines()]
    assert {line["profile"] for line in lines if line["kind"] == "started"} == {model}
    shown = [json.loads(one) for one in (tmp_path / "inner-1.observations.jsonl").read_text().splitlines()]
    items = {show for line in shown if line["kind"] == "advertised" for show in line["show"]}
    assert items
    assert all((b"sealed" in bytes.fromhex(item)) is (model == "group") for item in items)


@pytest.mark.slow
def test_with_a_tomography_service_clients_of_several_edge_brokers_are_enough() -> None:
    terms = AnonymityTerms(4, AnonymityCondition.SOURCE, "wait")
    alone, together = (
        simulate(Scenario(24, 20, 20, edges=4, carrier="brokers", terms=terms, tomography=with_service))
        for with_service in (False, True)
    )
    assert alone.hidden["subscriptions"] == together.hidden["subscriptions"] == 20
    assert alone.hidden["shown"] < together.hidden["shown"]
    assert alone.delivered < together.delivered


@pytest.mark.slow
@pytest.mark.parametrize("carrier", ["overlay", "central", "brokers"])
def test_a_network_all_of_whose_daemons_are_down_goes_on_without_publishing(carrier: CarrierName) -> None:
    faults = Faults(kill=0.9, churn=0.9)
    few = {"profile": "paper"} if carrier == "overlay" else {}  # else the subscribers are clients, and stay
    result = simulate(Scenario(2, 1, 12, carrier=carrier, minutes=20, faults=faults, **few))
    assert 0 < result.receipts < 12
    assert result.pairs == 12


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--condition", "source"], "--condition is about --k"),
        (["--otherwise", "wait"], "--otherwise is about --k"),
        (["--tomography"], "give --k"),
        (["--k", "3", "--tomography", "--privacy", "community"], "no --privacy"),
        (["--k", "3", "--otherwise", "bogus"], "add --tomography"),
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
