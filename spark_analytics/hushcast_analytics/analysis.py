"""Analysing: traces in; Parquet, a summary and a report out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics import delivery_figures
from hushcast_analytics.attacks.catalogue import ATTACKS, Attack
from hushcast_analytics.attacks.own_attack import load_attack
from hushcast_analytics.brokers.colluder_draws import DRAWS
from hushcast_analytics.brokers.examination import BrokersExamination
from hushcast_analytics.central.central_figures import of_central, without_conditions, without_relays
from hushcast_analytics.central.examination import CentralExamination
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.errors import TracesError
from hushcast_analytics.lines.line_figures import are_watched, line_figures
from hushcast_analytics.profile_runs import AnalysisPlan, ProfileRuns, Runs, profiles_of, runs_of, traces_of
from hushcast_analytics.provenance import Provenance, provenance_of, source_of
from hushcast_analytics.report.analysis_findings import Findings
from hushcast_analytics.report.report_page import more, page, verdict
from hushcast_analytics.spark_session import part_done
from hushcast_analytics.trace_files import Traces, files_of, open_traces
from hushcast_analytics.work_steps import WorkStep, WorkSteps, each_second, go_through

__all__ = ["SUMMARY_KEYS", "AnalysisPlan", "analyze", "chosen", "network_figures", "summary_of"]

SUMMARY_KEYS = (
    *("attack", "target", "profile", "colluding", "trials", "accuracy", "accuracy_low", "accuracy_high"),
    *(
        "targets",
        "candidates",
        "bound",
        "inverse_rank",
        "ndcg",
        "entropy_bits",
        "degree",
        "effective_set",
        "min_entropy_bits",
    ),
    "guessing_entropy",
)
"""What `summary.json` says of an attack; Parquet and report say more."""

_KINDS = {
    "attack": "string",
    "target": "string",
    "profile": "string",
    "trials": "long",
    "targets": "long",
    "anonymity_set": "long",
}
_MORE = ("precision", "recall", "anonymity_set", "belief", "belief_low", "belief_high")
ATTACK_ROWS = ", ".join(f"{key} {_KINDS.get(key, 'double')}" for key in (*SUMMARY_KEYS, *_MORE))
LOAD_BINS = 20
AT_ONCE = 2  # lanes: Spark plans a job in one thread, and leaves a second core idle meanwhile
_LINES_COST = 3.0  # as the next one
_FIGURES_COST = 12.0  # seconds of a small analysis on an idle machine, as of the other steps


def analyze(
    spark: SparkSession,
    source: str,
    out: Path,
    wanted: AnalysisPlan,
    baseline: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
    *,
    command: str | None = None,
    live: bool = False,
) -> dict[str, Any]:
    """Analyse the traces under `source`, write `out`, return the summary.

    `out` gets `summary.json`, `report.html`, Parquet `trials` (each trial's measures) and `attacks` (each
    attack's figures); for the traces under `baseline`, the same in `out`/baseline, and a place beside the
    others in the report. `command` is the command line, as provenance. `progress` hears of each step, and
    with `live` once a second. Raises `TracesError`.
    """
    places = [(source, out), *([] if baseline is None else [(baseline, out / "baseline")])]
    found, sources = [], []
    for path, place in places:
        traces = _read(spark, path, place, progress, live)
        sources.append(_source(spark, path, progress, live))
        found.append(_analysed(spark, traces, place, wanted, progress, live))
    for number, (findings, (_, place)) in enumerate(zip(found, places, strict=True)):
        beside = sources[1] if places[number + 1 :] else None
        findings.provenance = provenance_of(command, sources[number], beside, wanted.seed, findings.draws)
        (place / "summary.json").write_text(json.dumps(summary_of(findings), indent=1) + "\n")
    progress("drawing")
    ours, *others = found
    (out / "report.html").write_text(page(ours, others[0] if others else None))
    return summary_of(ours)


def summary_of(findings: Findings) -> dict[str, Any]:
    """Return what `summary.json` holds."""
    attacks = [{key: row.get(key) for key in SUMMARY_KEYS} for row in (*findings.attacks, *findings.brokers)]
    said = [
        {"profile": each.profile, "goal": each.goal, "standing": each.standing.value, "text": each.text}
        for each in verdict(findings)
    ]
    return {
        "provenance": findings.provenance,
        "network": findings.network,
        "attacks": attacks,
        "central": findings.central,
        "brokers": findings.brokers,
        "observers": findings.observers,
        "lines": findings.lines,
        "verdict": said,
        "more": more(findings),
    }


def _read(spark: SparkSession, source: str, out: Path, progress: Callable[[str], None], live: bool) -> Traces:
    with _shown(spark, f"reading {source}", progress, live):
        return open_traces(spark, source, str(out / "tables"))


def _source(spark: SparkSession, path: str, progress: Callable[[str], None], live: bool) -> Provenance:
    steps = WorkSteps(progress, 1.0)
    steps.begin(f"the digest of {path}")
    return source_of(spark, path, files_of(spark, path), steps.refresh if live else lambda share: None)


@contextmanager
def _shown(spark: SparkSession, text: str, progress: Callable[[str], None], live: bool) -> Iterator[None]:
    """Tell what the body does, and with `live` once a second how much is done of what Spark is at."""
    steps = WorkSteps(progress, 1.0)
    steps.begin(text)
    with each_second((lambda: steps.refresh(part_done(spark))) if live else None):
        yield


def _analysed(
    spark: SparkSession,
    traces: Traces,
    out: Path,
    wanted: AnalysisPlan,
    progress: Callable[[str], None],
    live: bool,
) -> Findings:
    findings = Findings({}, [], [])
    with _shown(spark, "what was run", progress, live):
        runs = runs_of(traces)
        profiles = profiles_of(traces, runs.overlay, wanted)
    draws = {"overlay": 1, "central": 1, "brokers": DRAWS}
    findings.draws = {carrier: count for carrier, count in draws.items() if getattr(runs, carrier)}
    findings.unwatched = tuple(sorted({share for each in profiles for share in each.unwatched}))
    if profiles and not any(each.shares for each in profiles):
        raise TracesError(
            f"of {profiles[0].case.everybody} relays these shares are less than one:"
            " give a higher --colluding"
        )
    watched = [each for each in profiles if each.shares]
    for each in watched:
        with _shown(spark, f"{each.name}: what colluding relays saw", progress, live):
            each.look()
    lanes = [lane for each in watched for lane in each.lanes()]
    lanes.append([WorkStep("the network's own figures", _FIGURES_COST, _own_figures(traces, runs, findings))])
    central = (
        CentralExamination(traces_of(traces, runs.central), runs.central, wanted) if runs.central else None
    )
    brokers = BrokersExamination(traces_of(traces, runs.brokers), wanted) if runs.brokers else None
    lanes += [carrier.steps() for carrier in (central, brokers) if carrier]
    if are_watched(traces):
        lanes.append([WorkStep("what an observer of lines sees", _LINES_COST, _of_lines(traces, findings))])
    # The longest first, or it would go on alone in the end.
    lanes.sort(key=lambda lane: -sum(step.cost for step in lane))
    lanes = [[_inheriting(spark, step) for step in lane] for lane in lanes]
    last = [_inheriting(spark, each.last()) for each in watched]
    go_through(lanes, progress, last=last, at_once=AT_ONCE, live=live, interrupt=spark.stop)
    for each in watched:
        each.add_to(findings)
    findings.central = central.rows if central else []
    if brokers is not None:
        findings.brokers, findings.observers = brokers.rows, brokers.observers
    out.mkdir(parents=True, exist_ok=True)
    if findings.attacks:
        with _shown(spark, "writing", progress, live):
            _keep(spark, out, watched, findings)
    return findings


def _inheriting(spark: SparkSession, step: WorkStep) -> WorkStep:
    """Give the thread of a step what `open_session` set for this one."""
    return replace(step, do=inheritable_thread_target(spark)(step.do))


def _keep(spark: SparkSession, out: Path, profiles: list[ProfileRuns], findings: Findings) -> None:
    trials = reduce(DataFrame.unionByName, [each.trials() for each in profiles])
    trials.write.mode("overwrite").partitionBy("profile", "attack").parquet(str(out / "trials"))
    names = (*SUMMARY_KEYS, *_MORE)
    rows = json.dumps([{name: row[name] for name in names} for row in findings.attacks])
    # Java reads what Python would load pandas for, to hand it over.
    read = F.from_json(F.lit(rows), f"array<struct<{ATTACK_ROWS}>>", {"mode": "FAILFAST"})
    table = spark.range(1).select(F.inline(read))
    table.write.mode("overwrite").parquet(str(out / "attacks"))


def _network(traces: Traces, findings: Findings) -> None:
    paired, loaded = kept(delivery_figures.pairs(traces)), kept(delivery_figures.loads(traces))
    latencies = (
        delivery_figures.latencies(traces, paired).groupBy("quantile").agg(F.avg("seconds").alias("seconds"))
    )
    findings.latencies = [row.asDict() for row in latencies.orderBy("quantile").collect()]
    findings.network = network_figures(traces, findings.latencies, paired, loaded)
    findings.loads = _histogram(loaded)


def _own_figures(traces: Traces, runs: Runs, findings: Findings) -> Callable[[], None]:
    """Return what measures the runs of one carrier: means over several would be of none."""
    if runs.overlay:
        of_overlay = traces_of(traces, runs.overlay) if runs.central or runs.brokers else traces
        return partial(_network, of_overlay, findings)
    if runs.central:
        return partial(_central, traces_of(traces, runs.central) if runs.brokers else traces, findings)
    return partial(_brokers, traces, findings)


def _of_lines(traces: Traces, findings: Findings) -> Callable[[], None]:
    def look() -> None:
        findings.lines = line_figures(traces)

    return look


def _brokers(traces: Traces, findings: Findings) -> None:
    _network(traces, findings)
    findings.network = without_relays(findings.network)


def _central(traces: Traces, findings: Findings) -> None:
    whole, conditional = without_conditions(traces)
    _network(whole, findings)
    findings.network = of_central(findings.network, conditional)


def network_figures(
    traces: Traces,
    latencies: list[dict[str, Any]],
    paired: DataFrame | None = None,
    loaded: DataFrame | None = None,
) -> dict[str, float]:
    """Return the network's own figures, means over runs (`delivery_figures.SUMMARY`), with `runs`.

    `paired` and `loaded` are `delivery_figures.pairs` and `delivery_figures.loads`, where they are at hand.
    """
    table = delivery_figures.summary(traces, paired, loaded)
    names = [name for name in table.columns if name != "run"]
    row = table.agg(F.count("*").alias("runs"), *(F.avg(name).alias(name) for name in names)).first()
    found = row.asDict() if row is not None else {}
    found |= {f"latency_p{100 * row['quantile']:.0f}": row["seconds"] for row in latencies}
    return {**found, "rejected_lines": traces.rejected.count()}


def _histogram(loads: DataFrame) -> list[dict[str, Any]]:
    most = loads.selectExpr("sent", "double(greatest(max(sent) over (), 1)) most")
    bin_ = f"least(floor(sent / most * {LOAD_BINS}), {LOAD_BINS - 1}) bin"
    counted = (
        most.selectExpr("most", bin_).groupBy("most", "bin").agg(F.expr("count(*) relays")).orderBy("bin")
    )
    return [
        {"sent": (row["bin"] + 0.5) * row["most"] / LOAD_BINS, "relays": row["relays"]}
        for row in counted.collect()
    ]


def chosen(names: Iterable[str]) -> tuple[Attack, ...]:
    """Return the attacks asked for, all of the catalogue if none; `module:function` is one of the caller's.

    Raises `TracesError` for the first that there is not.
    """
    asked = dict.fromkeys(names) or ATTACKS
    return tuple(load_attack(name) if ":" in name else _listed(name) for name in asked)


def _listed(name: str) -> Attack:
    if name not in ATTACKS:
        raise TracesError(
            f"--attack {name}: the attacks are {', '.join(ATTACKS)}, and module:function of your own"
        )
    return ATTACKS[name]
