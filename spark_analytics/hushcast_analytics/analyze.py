"""Analysing: traces in; Parquet, a summary and a report out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics import network
from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.attacks.catalogue import ATTACKS, Attack
from hushcast_analytics.examine import Examination, case_of
from hushcast_analytics.keeping import kept
from hushcast_analytics.measures import KEYS
from hushcast_analytics.reading import Traces, open_traces
from hushcast_analytics.report.page import page
from hushcast_analytics.report.pictures import Findings
from hushcast_analytics.summary import summarised

SUMMARY_KEYS = (
    *("attack", "target", "profile", "colluding", "trials", "accuracy", "accuracy_low", "accuracy_high"),
    *("bound", "inverse_rank", "ndcg", "entropy_bits", "degree", "effective_set", "min_entropy_bits"),
    "guessing_entropy",
)
"""What `summary.json` says of an attack; Parquet and report say more."""

_KINDS = {
    "attack": "string",
    "target": "string",
    "profile": "string",
    "trials": "long",
    "anonymity_set": "long",
}
_MORE = ("precision", "recall", "anonymity_set", "belief", "belief_low", "belief_high")
ATTACK_ROWS = ", ".join(f"{key} {_KINDS.get(key, 'double')}" for key in (*SUMMARY_KEYS, *_MORE))
MOMENTS = 8  # epochs at which knowledge over time is looked at; each costs as much as the attack
OVER_TIME = ("predecessor", "presence")
LOAD_BINS = 20


@dataclass(frozen=True)
class Wanted:
    """What to analyse: shares of colluding relays, names of attacks, the seed of who colludes.

    `topics_known` is the share of the topics that they know, as `Adversary` has it.
    """

    colluding: tuple[float, ...]
    attacks: tuple[str, ...]
    seed: int = 1
    topics_known: float = 1.0


def analyze(
    spark: SparkSession,
    source: str,
    out: Path,
    wanted: Wanted,
    baseline: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Analyse the traces under `source`, write `out`, return the summary.

    `out` gets `summary.json`, `report.html`, Parquet `trials` (each trial's measures) and `attacks` (each
    attack's figures); for the traces under `baseline`, the same in `out`/baseline, and a place beside the
    others in the report. Raises `TracesError`.
    """
    progress("reading traces")
    ours = _analysed(spark, open_traces(spark, source, str(out / "tables")), out, wanted, progress)
    other = None
    if baseline is not None:
        progress("reading the baseline's traces")
        traces = open_traces(spark, baseline, str(out / "baseline" / "tables"))
        other = _analysed(spark, traces, out / "baseline", wanted, progress)
    progress("drawing")
    (out / "report.html").write_text(page(ours, other))
    return summary_of(ours)


def summary_of(findings: Findings) -> dict[str, Any]:
    """Return what `summary.json` holds."""
    attacks = [{key: row[key] for key in SUMMARY_KEYS} for row in findings.attacks]
    return {"network": findings.network, "attacks": attacks}


def _analysed(
    spark: SparkSession, traces: Traces, out: Path, wanted: Wanted, progress: Callable[[str], None]
) -> Findings:
    progress("the network's own figures")
    latencies = network.latencies(traces).groupBy("quantile").agg(F.avg("seconds").alias("seconds"))
    quantiles = [row.asDict() for row in latencies.orderBy("quantile").collect()]
    findings = Findings(
        network=network_figures(traces, quantiles),
        latencies=quantiles,
        loads=_histogram(network.loads(traces)),
        tree=_small_tree(traces),
    )
    measured: list[DataFrame] = []
    for profile, runs in _by_profile(traces).items():
        case = case_of(_of_runs(traces.observations, runs), _of_runs(traces.truths, runs))
        progress(f"{profile}: what colluding relays saw")
        adversary = Adversary(
            wanted.colluding, active=True, seed=wanted.seed, topics_known=wanted.topics_known
        )
        examination = Examination(case, adversary)
        for subject in dict.fromkeys(ATTACKS[name].subject for name in wanted.attacks):
            attacks = [ATTACKS[name] for name in wanted.attacks if ATTACKS[name].subject == subject]
            progress(f"{profile}: {', '.join(attack.name for attack in attacks)}")
            trials = kept(examination.measured(attacks).withColumn("profile", F.lit(profile)))
            measured.append(trials)
            findings.attacks += _described(profile, summarised(trials))
        for name in OVER_TIME:
            if name in wanted.attacks:
                progress(f"{profile}: {name} over time")
                findings.over_time += _over_time(examination, ATTACKS[name], case.observations, profile)
    out.mkdir(parents=True, exist_ok=True)
    if findings.attacks:
        trials = reduce(DataFrame.unionByName, measured)
        trials.write.mode("overwrite").partitionBy("profile", "attack").parquet(str(out / "trials"))
        spark.createDataFrame(findings.attacks, ATTACK_ROWS).write.mode("overwrite").parquet(
            str(out / "attacks")
        )
    (out / "summary.json").write_text(json.dumps(summary_of(findings), indent=1) + "\n")
    return findings


def _described(profile: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "target": ATTACKS[row["attack"]].target, "profile": profile} for row in rows]


def network_figures(traces: Traces, latencies: list[dict[str, Any]]) -> dict[str, float]:
    """Return the network's own figures, means over runs (`network.SUMMARY`), with `runs`."""
    table = network.summary(traces)
    names = [name for name in table.columns if name != "run"]
    row = table.agg(F.count("*").alias("runs"), *(F.avg(name).alias(name) for name in names)).first()
    found = row.asDict() if row is not None else {}
    found |= {f"latency_p{100 * row['quantile']:.0f}": row["seconds"] for row in latencies}
    return {**found, "rejected_lines": traces.rejected.count()}


def _by_profile(traces: Traces) -> dict[str, list[str]]:
    """Return the runs of each profile that daemons started under."""
    started = traces.truths.where("kind = 'started'").groupBy("run").agg(F.first("profile").alias("profile"))
    found: dict[str, list[str]] = {}
    for row in started.orderBy("run").collect():
        found.setdefault(row["profile"], []).append(row["run"])
    return found


def _of_runs(table: DataFrame, runs: list[str]) -> DataFrame:
    return table.where(F.col("run").isin(*runs))


def _over_time(
    examination: Examination, attack: Attack, observations: DataFrame, profile: str
) -> list[dict[str, Any]]:
    """Return the figures of what is known by the end of some epochs, and `epochs_to_name`.

    That is the median over trials of the first of these moments from which on the right one stands alone at
    the top, infinite if most are never named so.
    """
    ends = observations.agg(F.min("epoch"), F.max("epoch")).first()
    if ends is None or ends[0] is None or ends[0] == ends[1]:
        return []
    first, last = ends
    moments = sorted({first + round((last - first) * part / (MOMENTS - 1)) for part in range(MOMENTS)})
    rows, known = [], []
    for moment in moments:
        trials = kept(examination.measured([attack], until=moment))
        figures = _described(profile, summarised(trials))
        rows += [{**row, "epochs": moment - first + 1} for row in figures]
        known.append(trials.select(*KEYS, "colluding", "right", F.lit(moment - first + 1).alias("epochs")))
    medians = _epochs_to_name(reduce(DataFrame.unionByName, known))
    return [{**row, "epochs_to_name": medians[row["colluding"]]} for row in rows]


def _epochs_to_name(known: DataFrame) -> dict[float, float]:
    wrong = F.max(F.when(F.col("right") == 0, F.col("epochs")))
    last_wrong = known.groupBy(*KEYS).agg(F.coalesce(wrong, F.lit(0)).alias("last"))
    later = known.join(last_wrong, KEYS).groupBy(*KEYS, "colluding")
    named = later.agg(F.min(F.when(F.col("epochs") > F.col("last"), F.col("epochs"))).alias("named"))
    never = F.coalesce(F.col("named").cast("double"), F.lit(float("inf")))
    found = named.groupBy("colluding").agg(F.percentile(never, 0.5).alias("median")).collect()
    return {row["colluding"]: row["median"] for row in found}


def _histogram(loads: DataFrame) -> list[dict[str, Any]]:
    top = loads.agg(F.max("sent")).first()
    most = float((top and top[0]) or 0) or 1.0
    bin_ = F.least(F.floor(F.col("sent") / most * LOAD_BINS), F.lit(LOAD_BINS - 1)).alias("bin")
    counted = loads.groupBy(bin_).agg(F.count("*").alias("relays")).orderBy("bin").collect()
    return [{"sent": (row["bin"] + 0.5) * most / LOAD_BINS, "relays": row["relays"]} for row in counted]


def _small_tree(traces: Traces) -> dict[str, str | None]:
    """Return one tree, of a network that is small enough to be drawn."""
    planned = traces.truths.where("kind = 'installed' and tree is not null")
    small = planned.where(F.size("tree") <= Findings.MOST_DRAWN).orderBy("run", "time").select("tree").first()
    return dict(small["tree"]) if small is not None else {}


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Return the attacks asked for, all if none; raise `KeyError` with the first that is unknown."""
    asked = tuple(dict.fromkeys(names))
    for name in asked:
        ATTACKS[name]
    return asked or tuple(ATTACKS)
