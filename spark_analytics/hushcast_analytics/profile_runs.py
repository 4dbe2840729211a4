"""The runs of one profile: what colluding relays learn of them, attack by attack and over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import Adversary, Choice
from hushcast_analytics.attacks.catalogue import Attack, Subject
from hushcast_analytics.examination import Case, Examination, case_of
from hushcast_analytics.measures import KEYS
from hushcast_analytics.report.analysis_findings import Findings, Row, SeenTree
from hushcast_analytics.trace_files import Traces
from hushcast_analytics.trial_summary import summarised
from hushcast_analytics.work_steps import WorkStep

MOMENTS = 8  # epochs at which knowledge over time is looked at; each costs as much as the attack
OVER_TIME = ("predecessor", "presence")
DRAWN_SHARE = 0.1  # of the relays that collude in the picture of a tree, or the nearest that was asked for
_BY = "@"  # between an attack's name and the epoch by the end of which it is played
_ATTACK_COST, _MEASURE_COST, _TREE_COST = 1.5, 5.0, 1.0  # seconds, as in `analysis.py`


@dataclass(frozen=True)
class AnalysisPlan:
    """What to analyse: shares of colluding relays, attacks, the seed of who colludes.

    `topics_known` is the share of the topics that they know, `chosen` which relays they are, and `users` how
    many subscribers work with them, as `Adversary` has it.
    """

    colluding: tuple[float, ...]
    attacks: tuple[Attack, ...]
    seed: int = 1
    topics_known: float = 1.0
    chosen: Choice = "random"
    users: int = 0


@dataclass(frozen=True)
class Runs:
    """The profiles of runs by their names, of each carrier's."""

    overlay: dict[str, str]
    central: dict[str, str]
    brokers: dict[str, str]


def runs_of(traces: Traces) -> Runs:
    """Return all runs; one of the central system has a server, one over brokers a root."""
    started = traces.truths.where("kind = 'started'").groupBy("run")
    found = started.agg(
        F.first("profile").alias("profile"),
        F.max(F.col("role") == "server").alias("central"),
        F.max(F.col("role") == "root").alias("brokers"),
    )
    runs = Runs({}, {}, {})
    for row in found.orderBy("run").collect():
        of = runs.central if row["central"] else runs.brokers if row["brokers"] else runs.overlay
        of[row["run"]] = row["profile"]
    return runs


def traces_of(traces: Traces, runs: Iterable[str]) -> Traces:
    """Return the traces of some runs, with all lines that are no records."""
    of = F.col("run").isin(*runs)
    return Traces(traces.observations.where(of), traces.truths.where(of), traces.rejected)


def profiles_of(traces: Traces, profiles: dict[str, str], wanted: AnalysisPlan) -> list[ProfileRuns]:
    """Return the profiles of the overlay's runs, in the order of their first runs."""
    found: dict[str, list[str]] = {}
    for run, profile in profiles.items():
        found.setdefault(profile, []).append(run)
    return [
        ProfileRuns(name, case_of(each.observations, each.truths), wanted)
        for name, runs in found.items()
        for each in [traces_of(traces, runs)]
    ]


class ProfileRuns:
    """The runs of one profile and what is measured of them, in steps.

    `shares` are those of the relays that are one at least, `unwatched` the others.
    """

    def __init__(self, name: str, case: Case, wanted: AnalysisPlan) -> None:
        self.name, self.case = name, case
        self.shares = tuple(share for share in wanted.colluding if int(share * case.everybody) >= 1)
        self.unwatched = tuple(share for share in wanted.colluding if share not in self.shares)
        self._wanted = wanted
        self._moments = _moments_of(case) if any(each.name in OVER_TIME for each in wanted.attacks) else []
        self._trials: DataFrame | None = None
        self._examination: Examination | None = None
        # In the order asked for, before threads fill them.
        subjects = dict.fromkeys(attack.subject for attack in wanted.attacks)
        self._rows: dict[Subject, list[Row]] = {subject: [] for subject in subjects}
        self._over_time: dict[str, list[Row]] = {name: [] for name in OVER_TIME}
        self._trees: list[SeenTree] = []

    def lanes(self) -> list[list[WorkStep]]:
        """Return the steps, after `look`, in lanes that do not depend on each other."""
        chosen = self._wanted.attacks
        lanes = []
        for subject in self._rows:
            attacks = [attack for attack in chosen if attack.subject == subject]
            text = f"{self.name}: {', '.join(attack.name for attack in attacks)}"
            lane = [WorkStep(text, _ATTACK_COST * len(attacks), partial(self._play, attacks))]
            for attack in self._followed():
                if attack.subject == subject:
                    cost = _ATTACK_COST * (len(self._moments) - 1)
                    text = f"{self.name}: {attack.name} over time"
                    lane.append(WorkStep(text, cost, partial(self._follow, attack)))
            lanes.append(lane)
        return [*lanes, [WorkStep(f"{self.name}: a tree", _TREE_COST, self._draw)]]

    def last(self) -> WorkStep:
        """Return the step that comes after all lanes."""
        return WorkStep(f"{self.name}: how right attacks are", _MEASURE_COST, self._measure)

    def trials(self) -> DataFrame:
        """Return each trial's measures, of what all attacks know in the end."""
        assert self._trials is not None
        return self._trials.where(f"attack not like '%{_BY}%'").withColumn("profile", F.lit(self.name))

    def add_to(self, findings: Findings) -> None:
        """Add what was found, in the order of the attacks asked for, whichever was done first."""
        self._view.forget()
        for rows in self._rows.values():
            findings.attacks += rows
        for attack in self._wanted.attacks:
            findings.over_time += self._over_time.get(attack.name, [])
        findings.trees += self._trees

    def look(self) -> None:
        """Find what colluding relays saw; it comes before all steps."""
        wanted = self._wanted
        adversary = Adversary(
            self.shares,
            wanted.chosen,
            active=True,
            seed=wanted.seed,
            topics_known=wanted.topics_known,
            users=wanted.users,
        )
        self._examination = Examination(self.case, adversary)

    @property
    def _view(self) -> Examination:
        assert self._examination is not None
        return self._examination

    def _draw(self) -> None:
        """Take one tree, of a network that is small enough to be drawn."""
        planned = self.case.truths.where("kind = 'installed' and tree is not null")
        small = planned.where(F.size("tree") <= Findings.MOST_DRAWN).orderBy("run", "time")
        if (found := small.select("run", "tree").first()) is not None:
            share = min(self.shares, key=lambda share: (abs(share - DRAWN_SHARE), share))
            bad = self._view.colluding(found["run"], share)
            self._trees.append(SeenTree(dict(found["tree"]), bad, self.name))

    def _followed(self) -> list[Attack]:
        """Return the attacks that are followed over time."""
        chosen = self._wanted.attacks if len(self._moments) > 1 else ()
        return [attack for attack in chosen if attack.name in OVER_TIME]

    def _play(self, attacks: list[Attack]) -> None:
        for attack in attacks:
            self._view.believe(attack)

    def _follow(self, attack: Attack) -> None:
        """Find what is known by the end of some epochs; all that there is was found already."""
        for moment in self._moments[:-1]:
            self._view.believe(attack, moment, f"{attack.name}{_BY}{moment}")
            self._view.forget(moment)

    def _measure(self) -> None:
        """Take the figures of all attacks, and over time those of what is known by the end of some epochs.

        There, `epochs_to_name` is the median over trials of the first of these moments from which on the
        right one stands alone at the top, infinite if most are never named so.
        """
        self._trials = self._view.measured()
        of = {attack.name: attack for attack in self._wanted.attacks}
        followed = [attack.name for attack in self._followed()]
        medians = _epochs_to_name(self._trials, followed, self._moments) if followed else {}
        for found in summarised(self._trials):
            name, _, moment = found["attack"].partition(_BY)
            row = self._described({**found, "attack": name}, of[name])
            if not moment:
                targets = self._view.targets(of[name].subject)
                self._rows[of[name].subject].append({**row, "targets": targets[row["colluding"]]})
            if name in followed:
                epochs = int(moment or self._moments[-1]) - self._moments[0] + 1
                to_name = medians[name, row["colluding"]]
                self._over_time[name].append({**row, "epochs": epochs, "epochs_to_name": to_name})
        for rows in self._over_time.values():
            rows.sort(key=lambda row: (row["epochs"], row["colluding"]))

    def _described(self, row: Row, attack: Attack) -> Row:
        return {
            **row,
            "target": attack.target,
            "subject": attack.subject,
            "profile": self.name,
            "relays": self.case.everybody,
            "users": self._wanted.users,
        }


def _moments_of(case: Case) -> list[int]:
    """Return some epochs, from the first to the last."""
    if case.epochs is None:
        return []
    first, last = case.epochs
    return sorted({first + round((last - first) * part / (MOMENTS - 1)) for part in range(MOMENTS)})


def _epochs_to_name(
    trials: DataFrame, names: list[str], moments: list[int]
) -> dict[tuple[str, float], float]:
    """Return medians by attack and share of colluding relays, of trials by what some moments told."""
    by = f"nvl(try_cast(split_part(attack, '{_BY}', 2) as int), {moments[-1]}) - {moments[0] - 1} epochs"
    known = trials.selectExpr(
        *(f"split_part(attack, '{_BY}', 1) attack", "run", "trial", "colluding", "right"), by
    ).where(F.col("attack").isin(names))
    wrong = F.max(F.when(F.col("right") == 0, F.col("epochs")))
    last_wrong = known.groupBy(*KEYS).agg(F.coalesce(wrong, F.lit(0)).alias("last"))
    later = known.join(last_wrong, KEYS).groupBy(*KEYS, "colluding")
    named = later.agg(F.min(F.when(F.col("epochs") > F.col("last"), F.col("epochs"))).alias("named"))
    never = F.coalesce(F.col("named").cast("double"), F.lit(float("inf")))
    found = named.groupBy("attack", "colluding").agg(F.percentile(never, 0.5).alias("median")).collect()
    return {(row["attack"], row["colluding"]): row["median"] for row in found}
