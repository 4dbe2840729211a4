"""Learning k on Spark: the same levels as the brokers' own code finds, and what is said of a bad file."""

from __future__ import annotations

import json
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
            "topic": f"topic {chosen}",
            "attributes": SPECS[chosen],
            "where": ", ".join(_condition(random, spec) for spec in SPECS[chosen] if random.random() < 0.6),
        }
        for chosen in (random.choice((0, 1, 1, 1, 2, 3)) for _ in range(count))
    ]


def _condition(random: Random, spec: str) -> str:
    if spec == "kind":
        return f"kind = {random.choice('xyz')}"
    low, high = sorted((random.randrange(7), random.randrange(7)))
    return f"a in [{low / 10 - 0.5:.1f}, {high / 10}]" if ":-1" in spec else f"{spec[0]} in [{low}, {high}]"


def written(path: Path, given: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in given))
    return path


def pure(file: Path) -> tuple[Levels, dict[tuple[str, str], Filter], dict[str, list[Filter]]]:
    levels, found, held = Levels(), {}, {}
    for line in file.read_bytes().splitlines():
        source, one = read_subscription(line, {})
        levels.insert(one, source)
        found[one.topic.name, write_where(one.predicate)] = one
        held.setdefault(source, []).append(one)
    return levels, found, held


def test_levels_and_costs_are_those_of_the_brokers_own_code(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hushcast_analytics.filters import held
    from hushcast_analytics.filters.analyze import SEARCHED, Wanted, learn

    monkeypatch.setattr(held, "PIECE", 15)  # so topics are in several pieces
    file = written(tmp_path / "f", lines(Random(7), 120))
    wanted = Wanted((4,), (Condition.SUCCESSOR, Condition.SOURCE), (0.5,), brokers=4)
    summary = learn(spark, file, tmp_path / "out", wanted)
    own, filters, sources = pure(file)
    counts = [summary[name] for name in ("filters", "subscriptions", "sources", "topics")]
    assert counts == [len(filters), 120, len(sources), 4]
    assert 60 < len(filters) <= SEARCHED
    rows = {
        (row["topic"], row["where"]): [row[each.value.replace("-", "_")] for each in Condition]
        for row in spark.read.parquet(str(tmp_path / "out" / "levels")).collect()
    }
    assert rows == {name: [own.level(one, each) for each in Condition] for name, one in filters.items()}
    for reached, cost in zip(
        summary["reached"], sorted(summary["cost"], key=lambda row: row["condition"] == "source"), strict=True
    ):
        condition = Condition(reached["condition"])
        assert cost["condition"] == condition
        having = {one for one in filters.values() if own.level(one, condition) >= 4}
        assert reached["filters"] == pytest.approx(len(having) / len(filters))
        whole = sum(having.issuperset(each) for each in sources.values())
        assert reached["subscribers"] == pytest.approx(whole / len(sources))
        shown = [generalise(own, one, condition, 4) for one in filters.values() if one not in having]
        added = [each.added for each in shown if each is not None]
        assert cost["added_mean"] == pytest.approx(sum(added) / len(added))
        assert cost["nothing"] == pytest.approx((len(shown) - len(added)) / len(filters))
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["levels"] == summary["levels"]


def test_a_bad_line_is_named_with_its_number(spark: SparkSession, tmp_path: Path) -> None:
    from hushcast_analytics.errors import TracesError
    from hushcast_analytics.filters import reading
    from hushcast_analytics.filters.analyze import Wanted, learn

    file = written(tmp_path / "f", [{"source": "a", "topic": "t"}, {"source": "b"}, 3])
    file.write_text("\n" + file.read_text())
    with pytest.raises(TracesError, match=r"line 3: 'topic' is missing"):
        reading.read_file(spark, file)
    with pytest.raises(TracesError, match="there are no subscriptions in it"):
        reading.read_file(spark, written(tmp_path / "empty", []))
    file = written(tmp_path / "few", [{"source": "a", "topic": "t"}])
    with pytest.raises(TracesError, match="--k 5 is more than the 1 subscriber"):
        learn(spark, file, tmp_path / "out", Wanted((5,), (Condition.SOURCE,), (0.5,)))
