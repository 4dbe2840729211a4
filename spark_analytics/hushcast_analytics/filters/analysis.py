"""Learning k: a file of subscriptions, or edge brokers' traces, in; Parquet, a summary and a report out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics.errors import TracesError
from hushcast_analytics.filters import level_figures
from hushcast_analytics.filters.distinct_filters import FILTER, DistinctFilters, held
from hushcast_analytics.filters.edge_colluders import VoucherRules, counted
from hushcast_analytics.filters.generalisation_costs import costs
from hushcast_analytics.filters.levels import COLUMNS, levels
from hushcast_analytics.filters.subscription_rows import read_file
from hushcast_analytics.filters.traced_subscriptions import standing
from hushcast_analytics.provenance import Provenance, provenance_of, source_of
from hushcast_analytics.report.filters_page import page
from hushcast_analytics.report.phrases import counted as counted_of
from hushcast_analytics.spark_session import part_done
from hushcast_analytics.trace_files import files_of, open_traces
from hushcast_analytics.work_steps import WorkSteps, each_second
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

SEARCHED = 100  # filters that a wider one is searched for, for each condition and k in some 20 ms
_DRAWS = {"brokers": 1}  # of who colludes
WATCHED = 500_000  # counts of who is behind a filter, one a broker: 10,000 filters with 50 brokers


@dataclass(frozen=True)
class LevelsPlan:
    """What to learn: k's, conditions, and of colluding edge brokers how many of how many, and the rules."""

    ks: tuple[int, ...]
    conditions: tuple[AnonymityCondition, ...]
    colluding: tuple[float, ...]
    brokers: int | None = 50
    """Edge brokers that subscribers are dealt out to; None: each is at the one that traces tell."""
    cap: int = 2
    spread: int = 3
    seed: int = 1

    @property
    def rules(self) -> list[VoucherRules]:
        """Neither cap nor spread, each of them, both."""
        return [VoucherRules(cap, spread) for cap, spread in product((None, self.cap), (None, self.spread))]


def learn(
    spark: SparkSession,
    file: Path,
    out: Path,
    wanted: LevelsPlan,
    progress: Callable[[str], None] = lambda text: None,
    *,
    command: str | None = None,
    live: bool = False,
) -> dict[str, Any]:
    """Learn k from the subscriptions in a file, write `out`, return the summary.

    `out` gets `summary.json`, `report.html`, and Parquet `levels` (the levels of each filter). `command` is
    the command line, as provenance. Raises `TracesError` with the line that cannot be used.
    """
    steps = WorkSteps(progress, 1.0)
    with each_second((lambda: steps.refresh(part_done(spark))) if live else None):
        steps.begin(f"reading {file}")
        source = source_of(spark, str(file), spark.read.text(str(file)).inputFiles())
        made_of = provenance_of(command, source, None, wanted.seed, _DRAWS)
        return learn_of(read_file(spark, file), out, wanted, made_of, steps.begin)


def learn_from_traces(
    spark: SparkSession,
    source: str,
    out: Path,
    wanted: LevelsPlan,
    progress: Callable[[str], None] = lambda text: None,
    *,
    command: str | None = None,
    live: bool = False,
) -> dict[str, Any]:
    """Learn k from what edge brokers' traces under `source` tell of their clients' subscriptions.

    As `learn`; lines become tables in `out`/tables first. Raises `TracesError` if brokers saw none.
    """
    steps = WorkSteps(progress, 1.0)
    with each_second((lambda: steps.refresh(part_done(spark))) if live else None):
        steps.begin(f"reading {source}")
        traces = open_traces(spark, source, str(out / "tables"))
        read = source_of(spark, source, files_of(spark, source))
        made_of = provenance_of(command, read, None, wanted.seed, _DRAWS)
        return learn_of(standing(traces.observations), out, wanted, made_of, steps.begin)


def learn_of(
    subscriptions: DataFrame,
    out: Path,
    wanted: LevelsPlan,
    made_of: Provenance,
    begin: Callable[[str], None],
) -> dict[str, Any]:
    """Learn k from a table of `SUBSCRIPTIONS`; `begin` hears of each step. As `learn` else."""
    begin("finding distinct filters")
    there = held(subscriptions, wanted.brokers, wanted.seed)
    for k in wanted.ks:
        if k > there.sources:
            raise TracesError(f"--k {k} is more than the {counted_of(there.sources, 'subscriber')} in it")
    if wanted.spread > there.brokers:
        raise TracesError(
            f"--spread {wanted.spread} is more than the {counted_of(there.brokers, 'edge broker')} in it"
        )
    begin(f"levels of {there.count:,} filters")
    found = levels(there, WATCHED / there.brokers / there.count)
    begin("what generalising costs")
    asked = (wanted.conditions, wanted.ks)
    searched = costs(there, found, asked, SEARCHED / there.count)
    begin("counting")
    watched = [bytes(row["behind"]) for row in found.where("behind is not null").select("behind").collect()]
    # Of few brokers a small share is none.
    shares = (0.0, *(share for share in wanted.colluding if round(share * there.brokers)))
    summary = {
        "provenance": made_of,
        **_counts(there),
        "wanted": {**asdict(wanted), "conditions": [each.value for each in wanted.conditions]},
        "watched": len(watched),
        "levels": level_figures.distribution(found),
        "reached": level_figures.reached(there, found, asked),
        "cost": level_figures.cost(searched),
        "colluding": list(counted(watched, there.brokers, asked, shares, wanted.rules, wanted.seed)),
    }
    begin("writing")
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    named = there.filters.select(*FILTER, "name", "where", F.size("sources").alias("sources"))
    rows = named.join(found, FILTER).select(
        F.col("name").alias("topic"), "where", "sources", *COLUMNS.values()
    )
    rows.write.mode("overwrite").parquet(str(out / "levels"))
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (out / "report.html").write_text(page(summary))
    return summary


def _counts(there: DistinctFilters) -> dict[str, int]:
    names = ("subscriptions", "sources", "topics", "largest", "brokers")
    return {"filters": there.count, **{name: getattr(there, name) for name in names}}
