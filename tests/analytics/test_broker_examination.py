"""Brokers' traces on Spark: what is read of them, by hand and by the model, and what the report says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from layered_traces import Tree
from pyspark.sql import SparkSession
from summary_keys import check_documented

from hushcast_analytics.analysis import SUMMARY_KEYS, AnalysisPlan, analyze, chosen
from hushcast_analytics.brokers.colluder_draws import DRAWS
from hushcast_analytics.brokers.observers import OBSERVERS
from hushcast_analytics.report.brokers_section import ATTACKS, attacks_on
from hushcast_cli.analysis.analyze import told_in_full
from hushcast_protocol.brokers.privacy import Privacy
from hushcast_testnet.simulations.overlay_simulation import simulate
from hushcast_testnet.simulations.scenario import Scenario

pytestmark = pytest.mark.spark

Row = dict[str, Any]
FAN_OUT, LEVELS = 4, 3
WORDS = {f"topic-{number}": Random(number).randbytes(16) for number in range(50)}
PRIVACY = {
    "paper": Privacy("full", 2, "paper"),
    "apart": Privacy("full", 3, "hardened", aggregates=False),
}


def network(directory: Path, privacy: Privacy) -> None:
    """Sixty-four clients with an interest each, and messages of topics, on the first most."""
    tree, random = Tree(directory, privacy, FAN_OUT, LEVELS), Random(7)
    wanting: dict[str, list[str]] = {}
    for client in tree.clients:
        topic = random.choice(sorted(WORDS))
        tree.want(client, topic, WORDS[topic])
        wanting.setdefault(topic, []).append(client)
    tree.settle()
    for place, (topic, clients) in enumerate(sorted(wanting.items())):
        for _ in range(1 + 24 // (place + 1)):
            tree.send(topic, clients)
    tree.write()


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("brokers")
    for name, privacy in PRIVACY.items():
        network(directory / "traces" / name, privacy)
    of = Privacy("community")
    simulate(
        Scenario(8, 4, 6, 2, carrier="brokers", fan_out=4, privacy=of, traces=directory / "traces" / of.text)
    )
    analyze(
        spark,
        str(directory / "traces"),
        directory / "out",
        AnalysisPlan((0.3,), chosen(["first-spy"]), seed=3),
    )
    return directory / "out"


@pytest.fixture(scope="module")
def summary(out: Path) -> Row:
    return json.loads((out / "summary.json").read_text())


@pytest.fixture(scope="module")
def of(summary: Row) -> Callable[[str, str], Row]:
    rows = {(row["profile"], row["attack"]): row for row in summary["brokers"]}
    under_full, in_a_community = len(attacks_on("full")), len(attacks_on("community"))
    assert under_full == len(ATTACKS) - 1  # nobody has a key of a community
    assert len(rows) == len(summary["brokers"]) == len(PRIVACY) * under_full + in_a_community
    return lambda name, attack: rows[PRIVACY[name].text if name in PRIVACY else name, attack]


@pytest.fixture(scope="module")
def seen(summary: Row) -> Callable[[str, str], Row]:
    """What an observer learns."""
    rows = {(row["profile"], row["observer"]): row for row in summary["observers"]}
    assert len(rows) == (len(PRIVACY) + 1) * len(OBSERVERS)
    return lambda name, observer: rows[PRIVACY[name].text if name in PRIVACY else name, observer]


def test_what_is_read_is_what_the_model_predicts(of: Callable[[str, str], Row]) -> None:
    share, beside = 0.3, 1 - 0.7 ** (FAN_OUT - 1)
    expected = {
        ("paper", "consecutive"): share**2,
        ("paper", "broker-and-child"): share * (beside + (1 - beside) * share),
        ("apart", "consecutive"): share**3,
    }
    for at, value in expected.items():
        row = of(*at)
        assert row["accuracy_low"] <= value <= row["accuracy_high"], at
        assert row["draws"] == DRAWS
        assert row["trials"] > 0.6 * DRAWS * 64
    alone = of("paper", "made-up-child")
    assert alone["accuracy_low"] <= share <= alone["accuracy_high"]  # any broker reads all of its clients'
    for attack in ("broker-and-child", "made-up-child"):  # no broker was told what compares children
        assert of("apart", attack)["accuracy"] == 0
    assert of("apart", "pairs")["accuracy"] == of("apart", "dictionary")["accuracy"] == 0


def test_a_broker_alone_reads_its_table_as_published(of: Callable[[str, str], Row]) -> None:
    pairs = of("paper", "pairs")
    assert pairs["accuracy"] > of("paper", "broker-and-child")["accuracy"]
    assert pairs["accuracy"] > 0.25  # nearly all that a colluding broker was shown


def test_who_is_sent_a_known_topic_is_seen_under_every_model(of: Callable[[str, str], Row]) -> None:
    for name in PRIVACY:
        assert 0.02 < of(name, "known-topic")["accuracy"] < 0.3


def test_who_learns_what(seen: Callable[[str, str], Row]) -> None:
    for name in (*PRIVACY, "community"):
        assert "interests" not in seen(name, "links")
        assert "interests" not in seen(name, "clients")
        for row in (seen(name, observer) for observer in OBSERVERS):
            for what in ("contents", "interests", "subscribers"):
                assert row.get(f"{what}_low", 0) <= row.get(what, 0) <= row.get(f"{what}_high", 1)
        together, root = seen(name, "brokers and clients"), seen(name, "root and brokers")
        assert root["subscribers"] >= together["subscribers"] > 0
        assert together["contents"] >= seen(name, "clients")["contents"] > 0
    assert seen("paper", "brokers")["interests"] > 0.3 > seen("apart", "brokers")["interests"]
    assert seen("paper", "root")["contents"] == 1
    outside, with_a_member = seen("community", "brokers"), seen("community", "brokers and clients")
    assert outside["interests"] == outside["contents"] == seen("community", "root")["contents"] == 0
    assert with_a_member["interests"] > 0
    assert with_a_member["contents"] > seen("community", "clients")["contents"]


def test_counting_messages_names_what_is_popular(of: Callable[[str, str], Row], out: Path) -> None:
    for name in PRIVACY:
        for attack in ("traffic-shares", "link-shares"):
            row = of(name, attack)
            assert row["accuracy_low"] > row["bound"] > 0, (name, attack)
    assert "by counting messages alone" in (out / "report.html").read_text()


def test_the_summary_has_the_attacks_and_the_report_says_what_they_mean(out: Path, summary: Row) -> None:
    check_documented(summary, "brokers")
    attacks = {row["attack"] for row in summary["attacks"]}
    assert {"consecutive", "broker-and-child"} <= attacks == set(ATTACKS)
    assert all(tuple(row) == SUMMARY_KEYS for row in summary["attacks"])
    assert "relays" not in summary["network"]
    lines = [line for line in told_in_full(summary) if line.startswith("Brokers, ")]
    paper = next(line for line in lines if "full/2/paper" in line)
    assert "model 3" in paper
    assert "does not hold" in paper
    assert "a broker alone, with a child that it makes up, reads" in paper
    apart = next(line for line in lines if "full/3/apart" in line)
    assert "a child that a broker makes up gives it nothing" in apart
    assert any("it holds against brokers outside" in line for line in lines)
    table = told_in_full(summary)
    assert sum(line.startswith("root and brokers ") for line in table) == len(PRIVACY) + 1
    page = (out / "report.html").read_text()
    assert "<h2>Brokers</h2>" in page
    assert "Who learns what" in page
    assert "central, hardened" in page
    assert "There was nobody to find" not in page
