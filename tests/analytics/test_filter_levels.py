"""Learning k on Spark: the same levels as the brokers' own code finds, and what is said of a bad file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hushcast_protocol.brokers.conditions import Condition
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.generalise import generalise
from hushcast_protocol.brokers.levels import Levels
from hushcast_protocol.brokers.subscriptions import read_subscription
from hushcast_protocol.content.predicates import write_where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SPECS = [["a:0..9"], ["a:0..9", "kind"], ["a:-1..1:0.5", "b:0..6", "kind"], []]


def lines(random: Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "source": f"subscriber {random.randrange(count // 4)}",
            "topic": random.choice(("one", "other")),
            "attributes": (specs := random.choice(SPECS)),
            "where": ", ".join(_condition(random, spec) for spec in specs if random.random() < 0.6),
        }
        for _ in range(count)
    ]


def _condition(random: Random, spec: str) -> str:
    if spec == "kind":
        return f"kind = {random.choice('xyz')}"
    low, high = sorted((random.randrange(10), random.randrange(10)))
    return (
        f"a in [{low / 10 - 0.5:.1f}, {high / 10}]"
        if ":-1" in spec
        else f"{spec[0]} in [{min(low, 6)}, {high}]"
    )


def written(path: Path, given: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in given))
    return path


def pure(file: Path) -> tuple[Levels, set[Filter]]:
    levels, found = Levels(), set()
    for line in file.read_bytes().splitlines():
        source, one = read_subscription(line, {})
        levels.insert(one, source)
        found.add(one)
    return levels, found


def test_levels_and_costs_are_those_of_the_brokers_own_code(spark: SparkSession, tmp_path: Path) -> None:
    from hushcast_analytics.filters import costs, held, levels, reading

    file = written(tmp_path / "f", lines(Random(7), 600))
    own, filters = pure(file)
    there = held.held(reading.read_file(spark, file), 4, 1)
    assert there.count == len(filters) > 150
    found = levels.levels(there, 1.0, piece=20)  # more than one piece of most topics
    named = there.filters.select("topic", "box", "name", "attributes", "where").join(found, held.FILTER)
    rows = {
        (row["name"], len(row["attributes"]), row["where"]): tuple(
            row[name] for name in levels.COLUMNS.values()
        )
        for row in named.collect()
    }
    wanted = {
        (one.topic.name, len(one.topic.attributes), write_where(one.predicate)): tuple(
            own.level(one, condition) for condition in Condition
        )
        for one in filters
    }
    assert rows == wanted
    asked = ((Condition.SUCCESSOR, Condition.SOURCE), (4,))
    searched = costs.costs(there, found, asked, 0.1).collect()
    sampled = there.filters.where("chance < 0.1").count()
    assert len(searched) == 2 * sampled > 8
    added = sorted(round(row["added"], 9) for row in searched if row["found"])
    chosen = {(row["name"], len(row["attributes"]), row["where"]) for row in _sample(there).collect()}
    ours = [
        one
        for one in filters
        if (one.topic.name, len(one.topic.attributes), write_where(one.predicate)) in chosen
    ]
    shown = [generalise(own, one, condition, 4) for one in ours for condition in asked[0]]
    assert added == sorted(round(each.added, 9) for each in shown if each is not None)


def _sample(there: Any) -> Any:
    return there.filters.where("chance < 0.1").select("name", "attributes", "where")


def test_a_bad_line_is_named_with_its_number(spark: SparkSession, tmp_path: Path) -> None:
    from hushcast_analytics.errors import TracesError
    from hushcast_analytics.filters import reading

    file = written(tmp_path / "f", [{"source": "a", "topic": "t"}, {"source": "b"}, 3])
    file.write_text("\n" + file.read_text())
    with pytest.raises(TracesError, match=r"line 3: 'topic' is missing"):
        reading.read_file(spark, file)
    with pytest.raises(TracesError, match="there are no subscriptions in it"):
        reading.read_file(spark, written(tmp_path / "empty", []))


def test_what_is_written(spark: SparkSession, tmp_path: Path) -> None:
    from hushcast_analytics.errors import TracesError
    from hushcast_analytics.filters.analyze import Wanted, learn

    given = [{"source": name, "topic": "news"} for name in "abc"]
    file = written(tmp_path / "f", [*given, {"source": "d", "topic": "rare"}])
    wanted = Wanted((2,), (Condition.SOURCE,), (0.5,), brokers=2, spread=1)
    summary = learn(spark, file, tmp_path / "out", wanted)
    assert [summary[name] for name in ("filters", "subscriptions", "sources", "topics", "largest")] == [
        2,
        4,
        4,
        2,
        1,
    ]
    assert summary["reached"] == [{"condition": "source", "k": 2, "filters": 0.5, "subscribers": 0.75}]
    (cost,) = summary["cost"]
    assert (cost["had"], cost["nothing"], cost["added_median"]) == (0.5, 0.5, None)
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["levels"] == summary["levels"]
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()
    rows = spark.read.parquet(str(tmp_path / "out" / "levels")).collect()
    assert {(row["topic"], row["where"], row["sources"]) for row in rows} == {
        ("news", "", 3),
        ("rare", "", 1),
    }
    with pytest.raises(TracesError, match="--k 5 is more than the 4 subscribers"):
        learn(spark, file, tmp_path / "out", replace(wanted, ks=(5,)))
