"""Examining the central system: all parties at once, what each believes and what else it learns."""

from __future__ import annotations

from dataclasses import asdict
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import is_known
from hushcast_analytics.central.beliefs import publishers, subscribers, subscriptions
from hushcast_analytics.central.facts import Facts, facts_of
from hushcast_analytics.central.parties import USER, Party, members_of, numbered, parties
from hushcast_analytics.central.party_results import DEFINITIONS, SHARES
from hushcast_analytics.central.party_shares import shares
from hushcast_analytics.central.party_sight import OF, PartySight
from hushcast_analytics.checkpoints import kept, small
from hushcast_analytics.measures import measured
from hushcast_analytics.profile_runs import AnalysisPlan
from hushcast_analytics.trace_files import Traces
from hushcast_analytics.trial_summary import summarised
from hushcast_analytics.trials import trial_facts, trials_of
from hushcast_analytics.work_steps import WorkStep

Row = dict[str, Any]

FIGURES = ("trials", "accuracy", "accuracy_low", "accuracy_high", "bound", "degree", "effective_set")
"""What is told of a definition; `accuracy` beside `bound`, as of attacks on the overlay."""

_SEEING_COST, _NAMING_COST, _SHARING_COST = 5.0, 9.0, 1.5  # seconds, as in `analysis.py`


class CentralExamination:
    """Runs of the central system, examined in three steps; then `rows` has what each party learns.

    A row has `profile`, `party` (its name), the fields of `Party`, a dictionary of `FIGURES` for each of
    `DEFINITIONS` that has trials, and those of `SHARES` that have a whole.
    """

    def __init__(self, traces: Traces, profiles: dict[str, str], wanted: AnalysisPlan) -> None:
        """`profiles` are those of all runs in `traces`, by their names."""
        self._traces, self._profiles, self._wanted = traces, profiles, wanted
        self.rows: list[Row] = []

    def steps(self) -> list[WorkStep]:
        """Return the steps, which follow each other."""
        text = "central system: "
        return [
            WorkStep(f"{text}what each party saw", _SEEING_COST, self._see),
            WorkStep(f"{text}whom each party names", _NAMING_COST, self._name),
            WorkStep(f"{text}what each party links and reads", _SHARING_COST, self._share),
        ]

    def _see(self) -> None:
        truths, wanted = self._traces.truths, self._wanted
        facts = facts_of(self._traces.observations, truths)
        self._parties = parties(_users(facts, wanted.colluding))
        numbers = numbered(truths.sparkSession, self._parties)
        self._members = kept(members_of(facts.people, numbers, wanted.seed))
        self._sight = PartySight(
            facts, truths, self._members, is_known(wanted.topics_known, wanted.seed, "topic")
        )

    def _name(self) -> None:
        self._named = _definitions(self._traces.truths, self._members, self._sight, self._profiles)

    def _share(self) -> None:
        learnt = _shares(self._sight, self._profiles)
        self.rows = [
            _row(profile, n, party, self._named, learnt)
            for profile in sorted(set(self._profiles.values()), reverse=True)  # paper first
            for n, party in enumerate(self._parties)
        ]


def _row(profile: str, n: int, party: Party, named: dict[Any, Row], learnt: dict[Any, float]) -> Row:
    defined = {name: named[profile, name, n] for name in DEFINITIONS if (profile, name, n) in named}
    rest = {name: learnt[profile, name, n] for name in SHARES if (profile, name, n) in learnt}
    return {"profile": profile, "party": party.name, **asdict(party), **defined, **rest}


def _users(facts: Facts, colluding: tuple[float, ...]) -> list[int]:
    """Return how many users some shares are, in the run that has most."""
    counted = facts.people.where(F.col("role") == USER).groupBy("run").count()
    most = counted.agg(F.max("count")).first()
    users = int((most and most[0]) or 0)
    return [int(share * users) for share in colluding]


def _definitions(
    truths: DataFrame, members: DataFrame, sight: PartySight, profiles: dict[str, str]
) -> dict[Any, Row]:
    """Return `FIGURES` by profile, definition and number of a party."""
    did = truths.where("kind in ('subscribed', 'published') or kind = 'started' and role = 'client'")
    each = members.select(*OF).distinct()
    copies = kept(_copied(did.join(small(each), "run")))
    theirs = _copied(members.select(*OF, "node"))
    believed = {
        "publisher": publishers(sight),
        "subscriber": subscribers(sight),
        "subscription": subscriptions(sight),
    }
    facts = trial_facts(copies, theirs)
    asked = {name: trials_of(subject, facts) for name, subject in DEFINITIONS.items()}
    label = {name: _label(name, profiles) for name in DEFINITIONS}
    posterior = [_copied(table).withColumn("attack", label[name]) for name, table in believed.items()]
    targets = [table.targets.withColumn("attack", label[name]) for name, table in asked.items()]
    trials = [table.trials.withColumn("attack", label[name]) for name, table in asked.items()]
    found = measured(*(kept(_all(tables)) for tables in (posterior, targets, trials)))
    plain = found.withColumn("run", F.regexp_replace("run", "@[^@]*$", ""))
    rows = summarised(plain.withColumn("colluding", F.lit(0.0)))
    figures = {}
    for row in rows:
        profile, name, party = row["attack"].split("@")
        figures[profile, name, int(party)] = {key: row[key] for key in FIGURES}
    return figures


def _shares(sight: PartySight, profiles: dict[str, str]) -> dict[Any, float]:
    """Return shares by profile, name and number of a party."""
    summed = (
        shares(sight)
        .withColumn("profile", _profile(profiles))
        .groupBy("profile", "party", "share")
        .agg((F.sum("part") / F.sum("whole")).alias("value"))
    )
    return {(row["profile"], row["share"], row["party"]): row["value"] for row in summed.collect()}


def _copied(table: DataFrame) -> DataFrame:
    """Make of a run one for each party, as `trials` has one for each adversary."""
    return table.withColumn("run", F.concat_ws("@", "run", "party")).drop("party")


def _label(name: str, profiles: dict[str, str]) -> Column:
    run = F.regexp_replace("run", "@[^@]*$", "")
    party = F.substring_index("run", "@", -1)
    return F.concat_ws("@", _profile(profiles, run), F.lit(name), party)


def _profile(profiles: dict[str, str], run: Column | None = None) -> Column:
    by_run = F.create_map(*(F.lit(text) for pair in profiles.items() for text in pair))
    return F.element_at(by_run, F.col("run") if run is None else run)


def _all(tables: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, tables)
