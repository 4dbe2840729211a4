"""What each party of the central system learns: VB §3, and what it links, recognises and reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from central_traces import Central
from pyspark.sql import SparkSession
from summary_keys import check_documented

from hushcast_analytics.analysis import AnalysisPlan, analyze, chosen
from hushcast_analytics.central.parties import Party, parties
from hushcast_analytics.central.party_results import DEFINITIONS, SHARES
from hushcast_cli.analysis.analyze import told_in_full

Row = dict[str, Any]
TOPICS = [f"topic-{n}" for n in range(5)]
PROFILES = ("paper", "hardened")


def network(directory: Path, profile: str) -> Central:
    """Ten users, each subscribed to two topics of five, each publishing twice on one of them."""
    made = Central(directory, profile, users=10)
    for n, user in enumerate(made.users):
        for topic in (TOPICS[n % 5], TOPICS[(n + 1) % 5]):
            made.subscribe(user, topic)
    for n, user in enumerate(made.users):
        for _ in range(2):
            made.publish(user, TOPICS[n % 5])
    return made


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("central")
    for profile in PROFILES:
        network(directory / "traces" / profile, profile).write()
    conditional = Central(directory / "traces" / "conditional", "conditional", users=2)
    conditional.subscribe(conditional.users[0], TOPICS[0], condition=" > 7")
    conditional.subscribe(conditional.users[1], TOPICS[0])
    conditional.publish(conditional.users[0], TOPICS[0])
    conditional.write()
    analyze(
        spark, str(directory / "traces"), directory / "out", AnalysisPlan((0.05, 0.2), chosen(["first-spy"]))
    )
    return directory / "out"


@pytest.fixture(scope="module")
def rows(out: Path) -> list[Row]:
    found = json.loads((out / "summary.json").read_text())["central"]
    return [row for row in found if row["profile"] in PROFILES]


@pytest.mark.spark
def test_the_page_has_its_keys(out: Path) -> None:
    check_documented(json.loads((out / "summary.json").read_text()), "central")


def of(rows: list[Row], profile: str, party: str, *, told: bool = False) -> Row:
    (one,) = [row for row in rows if (row["profile"], row["party"], row["told"]) == (profile, party, told)]
    return one


@pytest.mark.spark
def test_over_tor_nobody_is_told_from_others(rows: list[Row]) -> None:
    untold = [row for row in rows if not row["told"]]
    assert {row["profile"] for row in untold} == set(PROFILES)
    for row in untold:
        honest = 10 - row["users"]
        assert row["publisher"]["trials"] == 2 * honest
        assert row["publisher"]["accuracy"] == pytest.approx(1 / honest)
        for name in ("publisher", "subscriber"):
            assert row[name]["effective_set"] == pytest.approx(honest)
        assert row["subscription"]["accuracy"] == pytest.approx(2 / 5)


@pytest.mark.spark
@pytest.mark.parametrize("profile", PROFILES)
def test_who_knows_its_users_names_them(rows: list[Row], profile: str) -> None:
    publications = of(rows, profile, "publications proxy", told=True)
    assert publications["publisher"]["accuracy"] == 1
    assert publications["subscriber"]["accuracy"] == pytest.approx(2 / 5)
    deliveries = of(rows, profile, "deliveries proxy", told=True)
    assert deliveries["publisher"]["accuracy"] == pytest.approx(1 / 10)
    everything = of(rows, profile, "server, both proxies and 2 users, guessing", told=True)
    assert all(everything[name]["accuracy"] == 1 for name in DEFINITIONS)


@pytest.mark.spark
@pytest.mark.parametrize("profile", PROFILES)
def test_a_proxy_that_has_a_user_recognises_topics_that_the_user_knows(rows: list[Row], profile: str) -> None:
    """By hand, for a user of topics a and b of a, b, c, d, e; nine honest users are left.

    Subscribers of a and b are recognised. Who asked for c or d but not for b (c, d: four users; b, c: two;
    e, a: two) has so many votes as unnamed subscriptions: the first four stand at the top, of c they are two,
    of d all four, of e two. Five users asked for a or b; the others for two of the three that are left.
    """
    row = of(rows, profile, "deliveries proxy and a user", told=True)
    assert row["subscriber"]["accuracy"] == pytest.approx((1 + 1 + 2 / 4 + 1 + 2 / 4) / 5)
    assert row["subscription"]["accuracy"] == pytest.approx((5 + 4 * 2 / 3) / 9)
    # Honest subscriptions on a: 3, on b: 3, of 18; publications on a: 2, on b: 4, of 18.
    assert row["subscriptions_named"] == pytest.approx(6 / 18)
    assert row["publications_named"] == 0
    assert of(rows, profile, "publications proxy and a user")["publications_named"] == pytest.approx(6 / 18)


@pytest.mark.spark
def test_what_is_linked_tied_and_read_differs_between_the_profiles(rows: list[Row]) -> None:
    paper, hardened = (
        {(row["party"], row["told"]): row for row in rows if row["profile"] == profile}
        for profile in PROFILES
    )
    server, proxies = ("server", False), ("both proxies", False)
    for name in ("subscriptions_linked", "publications_linked"):
        assert paper[server][name] == paper[proxies][name] == 1
        assert hardened[server][name] == hardened[proxies][name] == 0
        assert hardened["both proxies", True][name] == 1
    assert paper[proxies]["deliveries_tied"] == 1
    assert hardened[proxies]["deliveries_tied"] == 0
    assert hardened[server]["deliveries_tied"] == 1
    assert paper[server]["bodies_read"] == 1
    assert hardened[server]["bodies_read"] == 0
    assert paper["publications proxy and a user", False]["bodies_read"] == 1
    assert hardened["publications proxy and a user", False]["bodies_read"] == pytest.approx(6 / 18)
    for row in (*paper.values(), *hardened.values()):
        if not row["users"] and "server" not in row["party"]:
            assert row["bodies_read"] == row["subscriptions_named"] == row["publications_named"] == 0


@pytest.mark.spark
def test_summary_and_report(out: Path, rows: list[Row]) -> None:
    summary = json.loads((out / "summary.json").read_text())
    assert summary["attacks"] == []
    network = summary["network"]
    assert (network["runs"], network["completeness"], network["pairs"]) == (
        3,
        1,
        pytest.approx((80 + 80 + 1) / 3),
    )
    assert (network["subscriptions"], network["conditional"]) == (pytest.approx(42 / 3), pytest.approx(1 / 3))
    assert "gini" not in network
    assert len(rows) == 2 * len(parties([2]))
    for name in (*DEFINITIONS, *SHARES):
        assert any(name in row for row in rows), f"nothing is measured as {name}"
    report = (out / "report.html").read_text()
    assert "Hardened. Users reach proxies over Tor" in report
    assert "nobody to find" not in report
    text = told_in_full(summary)
    assert any(line.startswith("publications proxy*") for line in text)
    (publisher,) = [line for line in text if line.startswith("Central, hardened, who published: ")]
    assert "not hidden from publications proxy*, nor from whoever works with them; 1" in publisher


def test_who_is_asked_about() -> None:
    found = parties([0, 3, 1, 3])
    assert len({(each.name, each.told) for each in found}) == len(found)
    assert [each.users for each in found if each.name.startswith("server and") and each.users] == [1, 3]
    assert Party(server=True).opens
    assert not Party(publications=True, deliveries=True).opens
    assert Party(publications=True, users=1).opens
