"""Learning k on Spark: the same levels as the brokers' own code finds, and what is said of a bad file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from summary_keys import check_documented

from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.clear_words import ShownFilter, outside
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms, decode_filter
from hushcast_protocol.brokers.generalisation import generalise
from hushcast_protocol.brokers.subscription_lines import read_subscription
from hushcast_protocol.content.attributes import write_attribute
from hushcast_protocol.content.predicates import write_where
from hushcast_testnet.simulations.overlay_simulation import simulate
from hushcast_testnet.simulations.scenario import Scenario

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
    from hushcast_analytics.filters import distinct_filters
    from hushcast_analytics.filters.analysis import SEARCHED, LevelsPlan, learn

    monkeypatch.setattr(distinct_filters, "PIECE", 15)  # so topics are in several pieces
    file = written(tmp_path / "f", lines(Random(7), 120))
    wanted = LevelsPlan((4,), (AnonymityCondition.SUCCESSOR, AnonymityCondition.SOURCE), (0.5,), brokers=4)
    summary = learn(spark, file, tmp_path / "out", wanted)
    check_documented(summary, "levels")
    own, filters, sources = pure(file)
    counts = [summary[name] for name in ("filters", "subscriptions", "sources", "topics")]
    assert counts == [len(filters), 120, len(sources), 4]
    assert 60 < len(filters) <= SEARCHED
    rows = {
        (row["topic"], row["where"]): [row[each.value.replace("-", "_")] for each in AnonymityCondition]
        for row in spark.read.parquet(str(tmp_path / "out" / "levels")).collect()
    }
    assert rows == {
        name: [own.level(one, each) for each in AnonymityCondition] for name, one in filters.items()
    }
    for told in summary["levels"]:
        ordered = sorted(own.level(one, AnonymityCondition(told["condition"])) for one in filters.values())
        at = {share: ordered[math.ceil(float(share) * len(ordered)) - 1] for share in told["quantiles"]}
        assert told["quantiles"] == at
    for reached, cost in zip(
        summary["reached"], sorted(summary["cost"], key=lambda row: row["condition"] == "source"), strict=True
    ):
        condition = AnonymityCondition(reached["condition"])
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


def _as_lines(traces: Path) -> list[dict[str, Any]]:
    """The subscriptions that edge brokers' traces tell, as lines of a file; nobody unsubscribes in them."""
    found = []
    for path in sorted(traces.glob("edge-*.observations.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            assert line["kind"] != "ended"
            if line["kind"] == "asked":
                one = outside(decode_filter(bytes.fromhex(line["filter"])))
                attributes = [write_attribute(each) for each in one.topic.attributes]
                where = write_where(one.predicate)
                known = {"topic": one.topic.name, "attributes": attributes, "where": where}
                found.append({"source": line["client"], **known})
    return found


def test_traces_of_brokers_tell_what_a_file_of_the_same_subscriptions_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    from hushcast_analytics.errors import TracesError
    from hushcast_analytics.filters.analysis import LevelsPlan, learn, learn_from_traces

    terms = AnonymityTerms(2, AnonymityCondition.SOURCE, "generalise")
    scenario = Scenario(12, 9, 3, topics=2, carrier="brokers", traces=tmp_path / "traces", terms=terms)
    simulate(scenario)
    given = _as_lines(tmp_path / "traces")
    assert len(given) == 18
    file = written(tmp_path / "f", given)
    asked = (2,), (AnonymityCondition.SUCCESSOR,), (0.1, 0.4)
    told = learn(spark, file, tmp_path / "of-file", LevelsPlan(*asked, brokers=4))
    found = learn_from_traces(
        spark, str(tmp_path / "traces"), tmp_path / "of-traces", LevelsPlan(*asked, brokers=None)
    )
    check_documented(found, "levels")
    own = ("provenance", "wanted", "colluding", "brokers")
    assert {**found, **dict.fromkeys(own)} == {**told, **dict.fromkeys(own)}
    names = ("topic", "where", "sources", *(each.value.replace("-", "_") for each in AnonymityCondition))
    both = [
        sorted(tuple(row) for row in spark.read.parquet(str(out / "levels")).select(*names).collect())
        for out in (tmp_path / "of-file", tmp_path / "of-traces")
    ]
    assert both[0] == both[1]
    assert found["brokers"] == 3
    assert {row["colluding"] for row in found["colluding"]} == {0.0, 0.4}  # a tenth of three is nobody
    with pytest.raises(TracesError, match="--spread 4 is more than the 3 edge brokers"):
        learn_from_traces(
            spark,
            str(tmp_path / "of-traces" / "tables"),
            tmp_path,
            LevelsPlan(*asked, brokers=None, spread=4),
        )


def test_those_subscriptions_of_traces_count_that_stood_when_there_were_most(spark: SparkSession) -> None:
    from hushcast_analytics.errors import TracesError
    from hushcast_analytics.filters.traced_subscriptions import standing
    from hushcast_analytics.trace_schemas import OBSERVATIONS

    def filter_of(low: int) -> str:
        return encode(ShownFilter(bytes(16), (9,), ((low, 9),))).hex()

    rows = [
        ("one", "e1", 1.0, "asked", "ann", "a", filter_of(1)),
        ("one", "e1", 2.0, "asked", "ann", "a", filter_of(2)),  # on other terms
        ("one", "e2", 3.0, "asked", "bob", "b", filter_of(3)),
        ("one", "e2", 4.0, "asked", "bob", "c", filter_of(3)),
        ("one", "e2", 5.0, "ended", "bob", "b", None),
        ("one", "e1", 6.0, "asked", "cem", "d", filter_of(6)),  # three, for the last time
        ("one", "e1", 7.0, "ended", "ann", "a", None),
        ("one", "e1", 8.0, "ended", "cem", "d", None),
        ("two", "e1", 1.0, "asked", "ann", "a", filter_of(2)),
    ]
    names = ("run", "node", "time", "kind", "client", "name", "filter")
    there = [
        {**dict.fromkeys(OBSERVATIONS.names), "epoch": 0, **dict(zip(names, row, strict=True))}
        for row in rows
    ]
    found = standing(spark.createDataFrame(there, OBSERVATIONS)).collect()
    assert sorted((row["source"].decode(), row["where"], row["broker"]) for row in found) == [
        ("one ann", "a0 in [2, ]", 0),
        ("one bob", "a0 in [3, ]", 1),
        ("one cem", "a0 in [6, ]", 0),
        ("two ann", "a0 in [2, ]", 0),
    ]
    assert len({bytes(row["topic"]) for row in found}) == 2
    there[0]["filter"] = there[1]["filter"] = "00"
    with pytest.raises(TracesError, match="run one: the filter of a subscription cannot be read"):
        standing(spark.createDataFrame(there, OBSERVATIONS))
    with pytest.raises(TracesError, match="no subscription at an edge broker"):
        standing(spark.createDataFrame([], OBSERVATIONS))


def test_a_bad_line_is_named_with_its_number(spark: SparkSession, tmp_path: Path) -> None:
    from hushcast_analytics.errors import TracesError
    from hushcast_analytics.filters import subscription_rows
    from hushcast_analytics.filters.analysis import LevelsPlan, learn

    file = written(tmp_path / "f", [{"source": "a", "topic": "t"}, {"source": "b"}, 3])
    file.write_text("\n" + file.read_text())
    with pytest.raises(TracesError, match=r"line 3: 'topic' is missing"):
        subscription_rows.read_file(spark, file)
    with pytest.raises(TracesError, match="there are no subscriptions in it"):
        subscription_rows.read_file(spark, written(tmp_path / "empty", []))
    file = written(tmp_path / "few", [{"source": "a", "topic": "t"}])
    with pytest.raises(TracesError, match="--k 5 is more than the 1 subscriber"):
        learn(spark, file, tmp_path / "out", LevelsPlan((5,), (AnonymityCondition.SOURCE,), (0.5,)))
