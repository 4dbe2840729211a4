"""The in-process backend: what whole networks of real daemons show, and that a run replays."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hushcast_testnet.simulations.overlay_simulation import Scenario, SimulationResult, simulate
from hushcast_testnet.simulations.scenario import THIS_MACHINE

pytestmark = pytest.mark.slow

SMALL = Scenario(nodes=20, subscribers=4, publications=12, topics=2)

MODEL = 23_750
"""Transmissions of one publication as published, with 500 relays at depth 3 and 50 subscribers.

From a model of trees and forwarding that shares no code with this project: every relay that a message
reaches sends it once to each of its next hops for the topic.
"""


def flood(relays: int, subscribers: int) -> float:
    """Transmissions of one publication as published, in the mean.

    In each tree a relay is the root, whose next hop is the mailbox, or its next hop is any other relay. To
    one that is its next hop in several trees it sends once. Not counted: relays that are leaves in all trees,
    which no message reaches.
    """
    others = (relays - 1) * (1 - (1 - 1 / relays) ** subscribers)
    return relays * (others + subscribers / relays)


def line(result: SimulationResult) -> dict[str, float]:
    fields = result.as_dict()
    return {name: value for name, value in fields.items() if name not in THIS_MACHINE}


@pytest.mark.parametrize("profile", ["hardened", "paper"])
def test_the_same_seed_gives_the_same_line_and_another_another(profile: str) -> None:
    scenario = replace(SMALL, profile=profile)
    one, again, other = (line(simulate(each)) for each in (scenario, scenario, replace(scenario, seed=2)))
    assert one == again
    assert one != other


@pytest.mark.parametrize("profile", ["hardened", "paper"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_everybody_gets_everything_once(profile: str, depth: int) -> None:
    result = simulate(replace(SMALL, profile=profile, depth=depth))
    assert result.pairs == 4 * 12
    assert result.delivered == result.pairs
    assert result.duplicates == 0


def test_a_second_origin_costs_at_most_twice_and_shows_nothing_twice() -> None:
    one, two = simulate(replace(SMALL, origins=1)), simulate(SMALL)  # as hardened has it
    assert two.delivered == two.pairs
    assert two.duplicates == 0
    assert one.transmissions < two.transmissions <= 2.2 * one.transmissions


@pytest.mark.parametrize("clients", [None, 0])
def test_subscribers_are_drawn_and_hold_some_of_the_topics(clients: int | None, tmp_path: Path) -> None:
    result = simulate(Scenario(8, 2, 12, topics=6, clients=clients, traces=tmp_path))
    assert result.delivered == result.pairs == 2 * 12
    paths = tmp_path.glob("*.truth.jsonl")
    told = [json.loads(text) for path in paths for text in path.read_text().splitlines()]
    people = {line["node"]: line["role"] for line in told if line["kind"] == "started"}
    held = Counter(line["node"] for line in told if line["kind"] == "subscribed")
    assert held.total() == 2 * 6
    assert {people[node] for node in held} == {"client" if clients is None else "relay"}
    assert list(people.values()).count("client") == (6 if clients is None else 0)
    assert max(held.values()) < 6  # nobody holds all: there is something to find out


# A host is one relay more on the way: where another tree of the topic has the edge to it, too, a message
# enters that tree there (docs/topics.md, what travels in excess).
def test_hardened_50_relays_10_subscribers_50_publications() -> None:
    result = simulate(Scenario(nodes=50, subscribers=10, publications=50, depth=3))
    assert result.pairs == 500
    assert result.delivered == result.pairs
    assert result.duplicates == 0
    assert result.transmissions <= 1.15 * result.ideal


def test_as_published_relays_flood_as_predicted() -> None:
    assert flood(500, 50) == pytest.approx(MODEL, rel=0.005)
    result = simulate(Scenario(nodes=100, subscribers=20, publications=3, depth=3, profile="paper"))
    assert result.delivered == result.pairs == 3 * 20
    assert result.transmissions / 3 == pytest.approx(flood(100, 20), rel=0.05)


def test_traces_keep_what_daemons_saw_apart_from_the_truth(tmp_path: Path) -> None:
    simulate(replace(SMALL, traces=tmp_path / "traces"))
    seen, known = (
        [
            json.loads(text)
            for path in sorted((tmp_path / "traces").glob(f"*.{kind}.jsonl"))
            for text in path.read_text().splitlines()
        ]
        for kind in ("observations", "truth")
    )
    assert {record["kind"] for record in seen} >= {"drop", "received", "sent", "installed", "parcel"}
    assert {record["kind"] for record in known} >= {"published", "subscribed", "installed", "delivered"}
    assert not any("topic" in record for record in seen)
    assert all(record["time"] >= 0 for record in seen + known)
    mailboxes = {record["mailbox"] for record in known if record["kind"] == "subscribed"}
    reached = {record["next"] for record in seen if record["kind"] == "sent"}
    assert mailboxes <= reached
