"""Subscribers who work with colluding relays: who they are, what they bring, and whom nobody asks about."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from pyspark.sql import Row, SparkSession

from benchmarks.lab.colluding_users import NAMED, UserRuns, draw_hits
from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.attacks.tree_evidence import seats
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.examination import Case, Examination, case_of
from hushcast_analytics.generator.generator_jobs import observations, truths
from hushcast_analytics.generator.scenario import GeneratorScenario

pytestmark = pytest.mark.spark

USERS = 3


@cache
def drawn(spark: SparkSession, profile: str) -> Case:
    """A network in which each of four topics has three subscribers."""
    asked = GeneratorScenario(24, 3, topics=4, publications=24, profile=profile, depth=2, seed=4)
    return case_of(kept(observations(spark, asked)), kept(truths(spark, asked)))


def told(case: Case, kind: str, *columns: str) -> list[Row]:
    return case.truths.where(f"kind = '{kind}'").select(*columns).collect()


@pytest.mark.parametrize("profile", ["paper", "hardened"])
def test_users_are_subscribers_and_nobody_is_asked_about_them(spark: SparkSession, profile: str) -> None:
    case = drawn(spark, profile)
    relays = {row["node"] for row in told(case, "started", "node", "role") if row["role"] == "relay"}
    people = {row["node"] for row in told(case, "started", "node")}
    wanted = {(row["topic"], row["node"]) for row in told(case, "subscribed", "topic", "node")}
    examination = Examination(case, Adversary((0.1,), users=USERS))
    theirs = set(examination.colluding("generated", 0.1))
    users = theirs & {node for _, node in wanted}
    assert len(theirs) == 2 + USERS
    assert len(users) >= USERS
    view = examination.view("topic")
    assert {row["node"] for row in view.members.collect()} == theirs & relays
    assert {row["candidate"] for row in view.candidates.collect()} == people - theirs
    held = Counter(topic for topic, node in wanted if node not in theirs)
    asked = {row["trial"]: row["bound"] for row in examination.trials("topic").trials.collect()}
    for topic, honest in held.items():
        assert asked[topic] == pytest.approx(honest / len(people - theirs))


@pytest.mark.parametrize("profile", ["paper", "hardened"])
def test_links_of_their_own_trees_are_no_evidence(spark: SparkSession, profile: str) -> None:
    case = drawn(spark, profile)
    relays = Adversary((0.5,))
    alone, joined = (Examination(case, each) for each in (relays, Adversary((0.5,), users=USERS)))
    theirs = joined.colluding("generated", 0.5)
    own = {
        (row["topic"], relay, end)
        for row in told(case, "installed", "node", "topic", "mailbox", "tree")
        if row["node"] in theirs
        for relay, above in row["tree"].items()
        for end in ([above] if above else [row["mailbox"], row["node"]])
    }
    found = [
        {(row["trial"], row["node"], row["next"]) for row in seats(each.view("topic")).collect()}
        for each in (alone, joined)
    ]
    assert found[0] & own or profile == "paper"  # where relays subscribe, colluding ones had trees before
    assert not found[1] & own
    assert found[0] - own <= found[1]


def test_a_mailbox_tells_who_brought_a_message(spark: SparkSession) -> None:
    case = drawn(spark, "hardened")
    users_alone = Examination(case, Adversary((0.0,), users=USERS))
    theirs = users_alone.colluding("generated", 0.0)
    assert len(theirs) == USERS
    came = case.observations.where("kind = 'arrived'").select("node", "message", "previous", "time").collect()
    first: dict[str, Row] = {}
    for row in sorted(came, key=lambda row: row["time"]):
        if row["node"] in theirs:
            first.setdefault(row["message"], row)
    believed = users_alone.posterior(ATTACKS["first-spy"]).collect()
    assert {(row["trial"], row["candidate"]) for row in believed} == {
        (message, row["previous"]) for message, row in first.items()
    }
    assert len(believed) > 5


@pytest.mark.slow
@pytest.mark.parametrize("users", [0, 5])
def test_they_name_as_many_as_a_model_that_shares_no_code(spark: SparkSession, users: int) -> None:
    asked = UserRuns("paper", relays=60, subscribers=8, runs=60, messages=0)
    hits, bound = draw_hits(asked, 0.05, users, trials=4000)
    rows = {row["attack"]: row for row in asked.figures(spark, (0.05,), users)}
    assert set(NAMED) <= set(rows)
    for name in NAMED:
        row = rows[name]
        assert row["trials"] == 60
        assert row["bound"] == pytest.approx(bound, rel=0.05)
        off = 3 * (hits[name] * (1 - hits[name]) / 60) ** 0.5 + 0.02
        assert row["accuracy"] == pytest.approx(hits[name], abs=off), name
