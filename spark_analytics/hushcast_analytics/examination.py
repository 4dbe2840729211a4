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
from hushcast_analytics.checkpoints import kept, let_go, little_in_one, small
from hushcast_analytics.errors import TracesError
from hushcast_analytics.measures import MEASURED, measured
from hushcast_analytics.trials import Trials, participants, trial_facts, trials_of

_EVERYTHING = TrainingFeatures()


@dataclass(frozen=True)
class Case:
    """Runs of one variant: their observations and truths, relays that a tree spans, its levels, and shards.

    `rosters` are those observations that write down rosters; `listed` are the relays of the whole network,
    as many as all shards have unless given. `epochs` are the first and the last one, if there is any.
    """

    observations: DataFrame
    truths: DataFrame
    rosters: DataFrame
    relays: int
    depth: int
    shards: int = 1
    listed: int | None = None
    epochs: tuple[int, int] | None = None

    @property
    def everybody(self) -> int:
        """How many relays there are, of which an adversary has its share."""
        return self.relays * self.shards if self.listed is None else self.listed


def case_of(observations: DataFrame, truths: DataFrame) -> Case:
    """Return traces with the public facts read from them: relays of a tree, most levels, and shards.

    Raises `TracesError` if leases have no marks, as in tables kept by an earlier version: no attack would
    find a topic's leases, and all would seem well.
    """
    seen = observations.selectExpr(
        "max(if(kind = 'installed' and mark is null, run, null)) unmarked",
        "min(epoch) first",
        "max(epoch) last",
    ).first()
    if seen is not None and seen["unmarked"] is not None:
        raise TracesError(
            f"run {seen['unmarked']}: leases without marks, from an earlier version; make it anew"
        )
    in_tree = "if(kind = 'installed', size(tree), null)"
    of_run = truths.groupBy("run").agg(
        F.expr("count(distinct if(kind = 'started' and role = 'relay', node, null)) relays"),
        F.expr("max(if(kind = 'installed', depth, null)) depth"),
        F.expr(f"sum({in_tree}) spanned"),
        F.expr(f"count({in_tree}) trees"),
    )
    facts = of_run.selectExpr("max(relays) relays", "max(depth) depth", "sum(spanned) / sum(trees) spanned")
    found = facts.first()
    relays = int((found and found["relays"]) or 0)
    depth, spanned = (found["depth"] or 1, found["spanned"] or relays) if found else (1, relays)
    shards = max(1, round(relays / max(1, spanned)))
    rosters = observations.where("kind = 'roster'")
    epochs = None if seen is None or seen["first"] is None else (seen["first"], seen["last"])
    return Case(observations, truths, rosters, relays // shards, int(depth), shards, relays, epochs)


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
        self._seen = kept(_renamed(case.observations.join(small(copies.drop("role")), ["run", "node"])))
        copied = case.truths.drop("tree").withColumn("share", shares)
        self._truths = kept(_renamed(copied.select("*", _copy(F.col("share"))).drop("share")))
        self._kinds, did = self._look()
        # Trees are most of the truths: they are read where some are its own.
        self._planned = kept(planned_by(case.truths, copies)) if "subscribed" in did else None
        public = _renamed(
            case.rosters.withColumn("share", shares).select("*", _copy(F.col("share"))).drop("share")
        )
        self._rosters = kept(rosters_of(public, adversary, self._members))
        published = published_by(self._truths, self._members)
        self._own = kept(published) if adversary.active else published.where("false")
        facts = trial_facts(self._truths, self._members)
        self._facts = replace(facts, honest=kept(facts.honest), topics=kept(facts.topics))
        self._drawn: dict[Subject, Trials] = {}
        self._trials: dict[Subject, Trials] = {}
        self._targets: dict[Subject, dict[float, int]] = {}
        self._evidence: dict[tuple[int | None, Subject | None], SharedEvidence] = {}
        self._believed: dict[str, tuple[Subject, DataFrame]] = {}

    def _look(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return of which kinds are the observations of the adversary's daemons, and the truths."""
        own = self._truths.join(small(self._members), ["run", "node"], "left_semi")
        every = self._seen.selectExpr("kind", "true seen").unionByName(own.selectExpr("kind", "false seen"))
        found = [(row["kind"], row["seen"]) for row in little_in_one(every).distinct().collect()]
        saw, did = (frozenset(kind for kind, seen in found if seen is which) for which in (True, False))
        return saw, did

    def colluding(self, run: str, share: float) -> frozenset[str]:
        """Return the adversary's daemons in a run, for a share of colluding relays."""
        copy = F.concat_ws("@", F.lit(run), F.lit(share).cast("string"))
        return frozenset(row["node"] for row in self._members.where(F.col("run") == copy).collect())

    def trials(self, subject: Subject) -> Trials:
        """Return the trials of a subject."""
        if subject not in self._trials:
            drawn = self._draw(subject)
            ready = (self._facts.honest, self._facts.topics, drawn.targets)
            self._trials[subject] = Trials(
                *(
                    table if any(table is one for one in ready) else kept(table)
                    for table in vars(drawn).values()
                )
            )
        return self._trials[subject]

    def targets(self, subject: Subject) -> dict[float, int]:
        """Return how many different ones all trials of a subject ask for, for each share of colluders."""
        if subject not in self._targets:
            each = self._draw(subject).targets.select("run", "target")
            share = F.substring_index("run", "@", -1).cast("double")
            found = each.distinct().groupBy(share.alias("share")).count().collect()
            self._targets[subject] = {row["share"]: row["count"] for row in found}
        return self._targets[subject]

    def _draw(self, subject: Subject) -> Trials:
        """Return the trials of a subject, of which the targets are kept: often there are none."""
        if subject not in self._drawn:
            drawn = trials_of(subject, self._facts)
            self._drawn[subject] = replace(drawn, targets=kept(drawn.targets))
        return self._drawn[subject]

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
            self._kinds,
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

    def believe(self, attack: Attack, until: int | None = None, called: str | None = None) -> None:
        """Find what an attack believes, by the end of an epoch if one is given, and keep it to be measured.

        There the attack is `called` by its name unless another is given. Threads may do this for attacks on
        different subjects.
        """
        if self.targets(attack.subject):
            name = called or attack.name
            believed = self.posterior(attack, until).withColumn("attack", F.lit(name))
            self._believed[name] = (attack.subject, kept(believed))

    def measured(self, attacks: Sequence[Attack] = (), until: int | None = None) -> DataFrame:
        """Return each trial's measures (`measures.measured`) and `colluding`.

        They are of what these attacks believe, and of all that was kept to be measured before. Measures are
        kept, what was measured is not. All is planned at once: that is as much work as for one attack.
        """
        for attack in attacks:
            self.believe(attack, until)
        if not self._believed:
            return self._truths.sparkSession.createDataFrame([], f"{MEASURED}, colluding double")
        named: dict[Subject, list[str]] = {}
        for name, (subject, _) in self._believed.items():
            named.setdefault(subject, []).append(name)
        each = [table for _, table in self._believed.values()]
        self._believed = {}
        # One table is planned with several times as soon as many.
        believed = each[0] if len(each) == 1 else kept(reduce(DataFrame.unionByName, each))
        targets, trials = (
            little_in_one(reduce(DataFrame.unionByName, tables))
            for tables in zip(*(self._asked(subject, names) for subject, names in named.items()), strict=True)
        )
        share = F.substring_index("run", "@", -1).cast("double")
        found = kept(measured(believed, targets, trials).withColumn("colluding", share))
        for table in {id(table): table for table in (believed, *each)}.values():
            let_go(table)
        return found

    def _asked(self, subject: Subject, names: Sequence[str]) -> tuple[DataFrame, DataFrame]:
        """Return the targets and the trials of a subject, for each attack of these names."""
        asked = self.trials(subject)
        attack = F.explode(F.array(*map(F.lit, names)))
        return asked.targets.withColumn("attack", attack), asked.trials.withColumn("attack", attack)

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
