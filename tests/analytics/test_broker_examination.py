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

from hushcast_analytics.analyze import SUMMARY_KEYS, Wanted, analyze
from hushcast_analytics.brokers.drawn import DRAWS
from hushcast_analytics.report.brokers import ATTACKS
from hushcast_cli.analyze import told_in_full
from hushcast_protocol.brokers.privacy import Privacy

pytestmark = pytest.mark.spark

Row = dict[str, Any]
FAN_OUT, LEVELS = 4, 3
WORDS = {f"topic-{number}": Random(number).randbytes(16) for number in range(50)}
PRIVACY = {
    "paper": Privacy("full", 2, "paper"),
    "apart": Privacy("full", 3, "hardened", aggregates=False),
}


def network(directory: Path, privacy: Privacy) -> None:
    """Sixty-four clients with an interest each, and a message on each topic."""
    tree, random = Tree(directory, privacy, FAN_OUT, LEVELS), Random(7)
    wanting: dict[str, list[str]] = {}
    for client in tree.clients:
        topic = random.choice(sorted(WORDS))
        tree.want(client, topic, WORDS[topic])
        wanting.setdefault(topic, []).append(client)
    tree.settle()
    for topic, clients in wanting.items():
        tree.send(topic, clients)
    tree.write()


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("brokers")
    for name, privacy in PRIVACY.items():
        network(directory / "traces" / name, privacy)
    analyze(spark, str(directory / "traces"), directory / "out", Wanted((0.3,), ("first-spy",), seed=3))
    return directory / "out"


@pytest.fixture(scope="module")
def summary(out: Path) -> Row:
    return json.loads((out / "summary.json").read_text())


@pytest.fixture(scope="module")
def of(summary: Row) -> Callable[[str, str], Row]:
    rows = {(row["profile"], row["attack"]): row for row in summary["brokers"]}
    assert len(rows) == len(summary["brokers"]) == len(PRIVACY) * len(ATTACKS)
    return lambda name, attack: rows[PRIVACY[name].text, attack]


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
    assert of("apart", "broker-and-child")["accuracy"] == 0  # no broker was told what compares children
    assert of("apart", "pairs")["accuracy"] == of("apart", "dictionary")["accuracy"] == 0


def test_a_broker_alone_reads_its_table_as_published(of: Callable[[str, str], Row]) -> None:
    pairs = of("paper", "pairs")
    assert pairs["accuracy"] > of("paper", "broker-and-child")["accuracy"]
    assert pairs["accuracy"] > 0.25  # nearly all that a colluding broker was shown


def test_who_is_sent_a_known_topic_is_seen_under_every_model(of: Callable[[str, str], Row]) -> None:
    for name in PRIVACY:
        assert 0.02 < of(name, "known-topic")["accuracy"] < 0.3


def test_the_summary_has_the_attacks_and_the_report_says_what_they_mean(out: Path, summary: Row) -> None:
    attacks = {row["attack"] for row in summary["attacks"]}
    assert {"consecutive", "broker-and-child"} <= attacks == set(ATTACKS)
    assert all(tuple(row) == SUMMARY_KEYS for row in summary["attacks"])
    assert "relays" not in summary["network"]
    lines = [line for line in told_in_full(summary) if line.startswith("Brokers, ")]
    paper = next(line for line in lines if "full/2/paper" in line)
    assert "model 3" in paper
    assert "does not hold" in paper
    page = (out / "report.html").read_text()
    assert "<h2>Brokers</h2>" in page
    assert "central, hardened" in page
    assert "There was nobody to find" not in page
