"""Examining: one set of traces, one adversary, one attack after the other, each measured over all trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import (
    Adversary,
    AdversaryView,
    SharedEvidence,
    colluders,
    colluding_users,
    known_to,
    planned_by,
    published_by,
    rosters_of,
)
from hushcast_analytics.attacks.catalogue import Attack, Subject
from hushcast_analytics.attacks.trained_attack import TrainingFeatures, learn, trained
from hushcast_analytics.checkpoints import kept, let_go
from hushcast_analytics.errors import TracesError
from hushcast_analytics.measures import MEASURED, measured
from hushcast_analytics.trials import Trials, participants, trial_facts, trials_of

_EVERYTHING = TrainingFeatures()


@dataclass(frozen=True)
class Case:
    """Runs of one variant: their observations and truths, relays that a tree spans, its levels, and shards.

    `rosters` are those observations that write down rosters; `listed` are the relays of the whole network,
    as many as all shards have unless given.
    """

    observations: DataFrame
    truths: DataFrame
    rosters: DataFrame
    relays: int
    depth: int
    shards: int = 1
    listed: int | None = None

    @property
    def everybody(self) -> int:
        """How many relays there are, of which an adversary has its share."""
        return self.relays * self.shards if self.listed is None else self.listed


def case_of(observations: DataFrame, truths: DataFrame) -> Case:
    """Return traces with the public facts read from them: relays of a tree, most levels, and shards.

    Raises `TracesError` if leases have no marks, as in tables kept by an earlier version: no attack would
    find a topic's leases, and all would seem well.
    """
    unmarked = observations.where("kind = 'installed' and mark is null").select("run").first()
    if unmarked is not None:
        raise TracesError(
            f"run {unmarked['run']}: leases without marks, from an earlier version; make it anew"
        )
    listed = participants(truths).where("role = 'relay'").groupBy("run").count()
    counted = listed.agg(F.max("count")).first()
    trees = truths.where("kind = 'installed'")
    facts = trees.agg(F.max("depth"), F.avg(F.size("tree"))).first()
    relays = int((counted and counted[0]) or 0)
    depth, spanned = (facts[0] or 1, facts[1] or relays) if facts else (1, relays)
    shards = max(1, round(relays / max(1, spanned)))
    rosters = observations.where("kind = 'roster'")
    return Case(observations, truths, rosters, relays // shards, int(depth), shards, relays)


class Examination:
    """An adversary's view of some traces, and the trials it is measured by.

    For each share of colluding relays there is a copy of all runs, named `run@share`: one job does all.
    """

    def __init__(self, case: Case, adversary: Adversary, learning: TrainingFeatures = _EVERYTHING) -> None:
        """`learning` is what the trained attack looks at."""
        self._learning = learning
        self._case = case
        self._adversary = adversary
        people = participants(case.truths)
        shares = F.explode(F.array(*(F.lit(share) for share in adversary.shares)))
        relays = people.where("role = 'relay'").select("run", "node")
        theirs = colluders(adversary, relays, case.observations)
        if adversary.clients:
            clients = people.where(F.col("node").isin(*adversary.clients))
            theirs = theirs.unionByName(clients.select("run", "node", shares.alias("share")))
        if adversary.users:
            theirs = theirs.unionByName(colluding_users(adversary, case.truths, theirs))
        roles = theirs.join(people.select("run", "node", "role"), ["run", "node"], "left")
        copies = kept(roles.select("run", "node", "role", _copy(F.col("share"))))
        self._members = copies.select(F.col("copy").alias("run"), "node")
        self._relays = copies.where("role = 'relay'").select(F.col("copy").alias("run"), "node")
        subscribed = case.truths.where("kind = 'subscribed'")
        own = subscribed.join(F.broadcast(copies), ["run", "node"], "left_semi")
        # Trees are most of the truths: they are read where some are its own.
        self._planned = None if own.isEmpty() else kept(planned_by(case.truths, copies))
        self._seen = kept(_renamed(case.observations.join(F.broadcast(copies.drop("role")), ["run", "node"])))
        copied = case.truths.drop("tree").withColumn("share", shares)
        self._truths = kept(_renamed(copied.select("*", _copy(F.col("share"))).drop("share")))
        public = _renamed(
            case.rosters.withColumn("share", shares).select("*", _copy(F.col("share"))).drop("share")
        )
        self._rosters = kept(rosters_of(public, adversary, self._members))
        published = published_by(self._truths, self._members)
        self._own = kept(published) if adversary.active else published.where("false")
        facts = trial_facts(self._truths, self._members)
        self._facts = replace(facts, honest=kept(facts.honest), topics=kept(facts.topics))
        self._trials: dict[Subject, Trials] = {}
        self._targets: dict[Subject, dict[float, int]] = {}
        self._evidence: dict[tuple[int | None, Subject | None], SharedEvidence] = {}

    def colluding(self, run: str, share: float) -> frozenset[str]:
        """Return the adversary's daemons in a run, for a share of colluding relays."""
        copy = F.concat_ws("@", F.lit(run), F.lit(share).cast("string"))
        return frozenset(row["node"] for row in self._members.where(F.col("run") == copy).collect())

    def trials(self, subject: Subject) -> Trials:
        """Return the trials of a subject."""
        if subject not in self._trials:
            tables = vars(trials_of(subject, self._facts)).values()
            common = (self._facts.honest, self._facts.topics)
            self._trials[subject] = Trials(
                *(table if any(table is one for one in common) else kept(table) for table in tables)
            )
        return self._trials[subject]

    def targets(self, subject: Subject) -> dict[float, int]:
        """Return how many different ones all trials of a subject ask for, for each share of colluders."""
        if subject not in self._targets:
            asked = self.trials(subject)
            each = asked.targets.join(asked.trials, ["run", "trial"], "left_semi").select("run", "target")
            share = F.substring_index("run", "@", -1).cast("double")
            found = each.distinct().groupBy(share.alias("share")).count().collect()
            self._targets[subject] = {row["share"]: row["count"] for row in found}
        return self._targets[subject]

    def view(self, subject: Subject, until: int | None = None) -> AdversaryView:
        """Return what the adversary goes by; with `until`, by the end of that epoch."""
        asked = self.trials(subject)
        # A message's id is plain to whoever has the message.
        known = subject == "message"
        return AdversaryView(
            self._seen if until is None else self._seen.where(F.col("epoch") <= until),
            self._relays,
            self._rosters if until is None else self._rosters.where(F.col("epoch") <= until),
            asked.questions if known else known_to(self._adversary, asked.questions, "trial"),
            asked.candidates,
            self._own,
            self._case.relays,
            self._case.depth,
            self._case.shards,
            self._planned,
            # Who is asked about all topics goes by the same, whatever is asked; others have their own.
            self._evidence.setdefault(
                (until, None if asked.questions is self._facts.topics else subject), SharedEvidence()
            ),
        )

    def posterior(self, attack: Attack, until: int | None = None) -> DataFrame:
        """Return what an attack believes; the trained one learns on half of the topics for the other half."""
        view = self.view(attack.subject, until)
        if attack.rule is not None:
            return attack.rule(view)
        # It learns from subscriptions of its own, so from topics that it knows.
        targets = known_to(self._adversary, self.trials(attack.subject).targets, "trial")
        first, second = (
            _in_half(
                trained(view, learn(view, _in_half(targets, other), self._learning), self._learning), half
            )
            for half, other in ((0, 1), (1, 0))
        )
        return first.unionByName(second)

    def measured(self, attacks: Sequence[Attack], until: int | None = None) -> DataFrame:
        """Return each trial's measures (`measures.measured`) and `colluding`, of attacks of one subject.

        They are kept; what attacks believe is not, once it is measured.
        """
        asked = self.trials(attacks[0].subject)
        if not self.targets(attacks[0].subject):
            return self._truths.sparkSession.createDataFrame([], f"{MEASURED}, colluding double")
        each = [
            kept(self.posterior(attack, until).withColumn("attack", F.lit(attack.name))) for attack in attacks
        ]
        # One table is planned with several times as soon as many.
        believed = each[0] if len(each) == 1 else kept(reduce(DataFrame.unionByName, each))
        names = F.explode(F.array(*(F.lit(attack.name) for attack in attacks)))
        found = measured(
            believed, asked.targets.withColumn("attack", names), asked.trials.withColumn("attack", names)
        )
        share = F.substring_index("run", "@", -1).cast("double")
        trials = kept(found.withColumn("colluding", share))
        for table in {id(table): table for table in (believed, *each)}.values():
            let_go(table)
        return trials

    def forget(self, until: int | None = None) -> None:
        """Free the evidence of all that there is, or of what there is by the end of an epoch.

        What was made of it can be read no more, but for what is kept.
        """
        for key in [key for key in self._evidence if key[0] == until]:
            self._evidence.pop(key).forget()


def _copy(share: Column) -> Column:
    return F.concat_ws("@", "run", share.cast("string")).alias("copy")


def _renamed(table: DataFrame) -> DataFrame:
    return table.withColumn("run", F.col("copy")).drop("copy")


def _in_half(rows: DataFrame, half: int) -> DataFrame:
    return rows.where(F.pmod(F.xxhash64("run", "trial"), F.lit(2)) == half)
