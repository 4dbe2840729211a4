"""What edge brokers show of subscribers who come and go, recounted from the traces of a simulated network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from broker_recount import Recount, play

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback

EVENTS = 400

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recount")


@pytest.fixture(scope="module")
def found(traces: Path) -> Recount:
    return play(traces, EVENTS, seed=1)


def test_no_filter_below_its_k_leaves_an_edge_broker_whoever_comes_and_goes(found: Recount) -> None:
    for condition in AnonymityCondition:
        for way in get_args(Fallback):
            is_refused = (condition, way) == (AnonymityCondition.SOURCE, "bogus")  # no service counts sources
            assert (found.counts[f"{condition.value}, {way}"] > 0) is not is_refused
    assert min(found.counts["shown"], found.counts["withdrawn"]) > 40
    assert found.longest < 1.0


def test_the_recount_sees_what_should_not_have_left(found: Recount, traces: Path) -> None:
    lines = [json.loads(line) for line in (traces / "edge-1.observations.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "asked" and line["k"] > 1:
            line["k"] += 1
    with pytest.raises(AssertionError, match="too few behind it"):
        Recount().read(lines)


def test_the_recount_counts_the_sources_that_are_made_up(found: Recount, traces: Path) -> None:
    lines = [json.loads(line) for line in (traces / "edge-1.observations.jsonl").read_text().splitlines()]
    made_up = [line for line in lines if line["kind"] == "bogus" and line["sources"]]
    assert len(made_up) >= 10
    for line in made_up:
        line["sources"] -= 1
    with pytest.raises(AssertionError, match="too few behind it"):
        Recount().read(lines)


def test_the_recount_sees_what_was_not_withdrawn(found: Recount, traces: Path) -> None:
    lines = [json.loads(line) for line in (traces / "edge-1.observations.jsonl").read_text().splitlines()]
    for line in lines:
        line["withdraw"] = []
    with pytest.raises(AssertionError, match="not withdrawn"):
        Recount().read(lines)
