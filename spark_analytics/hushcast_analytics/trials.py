"""Trials: drawn from a run's ground truth, for measuring only; an attack gets only the questions.

A trial is honest: its publisher, or a subscriber, is not of the adversary's. Each subject has

- `questions` (run, trial, token), what the adversary is asked about;
- `candidates` (run, candidate), whom it may name;
- `targets` (run, trial, target), who it is;
- `trials` (run, trial, candidates, bound), how many might be named and what VB §3 allows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.attacks.catalogue import Subject
from hushcast_analytics.checkpoints import small


@dataclass(frozen=True)
class Trials:
    """The four tables of one subject."""

    questions: DataFrame
    candidates: DataFrame
    targets: DataFrame
    trials: DataFrame


@dataclass(frozen=True)
class TrialFacts:
    """What trials are drawn from: ground truth, the adversary's `members` (run, node), and what several
    subjects ask: the `honest` (run, candidate), and `topics` as `topics_of` has them.
    """

    truths: DataFrame
    members: DataFrame
    honest: DataFrame
    topics: DataFrame


def trial_facts(truths: DataFrame, members: DataFrame) -> TrialFacts:
    """Return what the trials against an adversary whose daemons are `members` (run, node) are drawn from."""
    others = participants(truths).join(members, ["run", "node"], "left_anti")
    honest = others.select("run", F.col("node").alias("candidate"))
    return TrialFacts(truths, members, honest, topics_of(truths))


def participants(truths: DataFrame) -> DataFrame:
    """Return (run, node, role) of all daemons that were ever up."""
    return truths.where("kind = 'started'").groupBy("run", "node").agg(F.first("role").alias("role"))


def trials_of(subject: Subject, facts: TrialFacts) -> Trials:
    """Return the trials of a subject."""
    if subject == "message":
        return _of_publishers(facts, facts.truths, "message")
    if subject == "author":
        return _of_publishers(facts, _single(facts.truths), "topic")
    if subject == "topic":
        return _of_topics(facts)
    if subject == "link":
        return _of_links(facts)
    return _of_participants(facts)


def topics_of(truths: DataFrame) -> DataFrame:
    """Return (run, trial, token): each topic with its tokens, one a day."""
    planned = truths.where("kind = 'installed'")
    return planned.select("run", F.col("topic").alias("trial"), F.col("tokens")[0].alias("token")).distinct()


def _single(truths: DataFrame) -> DataFrame:
    """Publications on topics that have one author, and several messages."""
    published = truths.where("kind = 'published'")
    single = published.groupBy("run", "topic").agg(
        F.countDistinct("node").alias("authors"), F.count("*").alias("messages")
    )
    keep = single.where("authors = 1 and messages > 1")
    return truths.join(keep.select("run", "topic"), ["run", "topic"], "left_semi")


def _of_publishers(facts: TrialFacts, truths: DataFrame, trial: str) -> Trials:
    honest = facts.honest
    published = truths.where("kind = 'published'").withColumn("trial", F.col(trial))
    everyone = published.select("run", "trial", F.col("node").alias("target")).distinct()
    targets = everyone.join(honest.withColumnRenamed("candidate", "target"), ["run", "target"], "left_semi")
    asked = everyone.select("run", "trial").distinct()
    questions = asked.withColumn("token", F.col("trial")) if trial == "message" else facts.topics
    h = honest.groupBy("run").agg(F.count("*").alias("candidates"))
    trials = asked.join(small(h), "run").withColumn("bound", 1 / F.col("candidates"))
    return Trials(questions, honest, targets.select("run", "trial", "target"), trials)


def _subscribed(truths: DataFrame) -> DataFrame:
    return truths.where("kind = 'subscribed'").select("run", "topic", "node").distinct()


def _of_topics(facts: TrialFacts) -> Trials:
    """Topics: who subscribes to them?

    VB's bound is (s − A_s)/(S − A_s). Of S we leave out all who are the adversary's: it knows that those of
    them who do not subscribe do not, and would beat the bound without looking.
    """
    honest = facts.honest
    subscribed = _subscribed(facts.truths).withColumnRenamed("topic", "trial")
    theirs = facts.members.withColumn("theirs", F.lit(1))
    marked = subscribed.join(theirs, ["run", "node"], "left").fillna(0, ["theirs"])
    targets = marked.where("theirs = 0").select("run", "trial", F.col("node").alias("target"))
    s = marked.groupBy("run", "trial").agg(
        F.count("*").alias("subscribers"), F.sum("theirs").alias("colluding")
    )
    h = honest.groupBy("run").agg(F.count("*").alias("candidates"))
    others = F.col("subscribers") - F.col("colluding")
    trials = (
        s.join(small(h), "run")
        .withColumn("bound", others / F.col("candidates"))
        .select("run", "trial", "candidates", "bound")
    )
    return Trials(facts.topics, honest, targets, trials)


def _of_links(facts: TrialFacts) -> Trials:
    """Topics with one subscriber: which others are that subscriber's?"""
    honest = _subscribed(facts.truths).join(facts.members, ["run", "node"], "left_anti")
    single = (
        honest.groupBy("run", "topic")
        .agg(F.count("*").alias("n"), F.first("node").alias("node"))
        .where("n = 1")
    )
    topics = single.select("run", F.col("topic").alias("candidate"))
    ours = single.select("run", "node", F.col("topic").alias("trial"))
    pairs = ours.join(ours.withColumnRenamed("trial", "target"), ["run", "node"]).where("trial != target")
    targets = pairs.select("run", "trial", "target")
    counted = targets.groupBy("run", "trial").agg(F.count("*").alias("linked"))
    h = topics.groupBy("run").agg((F.count("*") - 1).alias("candidates"))
    trials = counted.join(small(h), "run").withColumn("bound", F.col("linked") / F.col("candidates"))
    asked = facts.topics.join(topics.withColumnRenamed("candidate", "trial"), ["run", "trial"], "left_semi")
    return Trials(asked, topics, targets, trials.select("run", "trial", "candidates", "bound"))


def _of_participants(facts: TrialFacts) -> Trials:
    subscribed = _subscribed(facts.truths)
    topics = subscribed.select("run", F.col("topic").alias("candidate")).distinct()
    targets = subscribed.join(
        facts.honest.withColumnRenamed("candidate", "node"), ["run", "node"], "left_semi"
    ).select("run", F.col("node").alias("trial"), F.col("topic").alias("target"))
    t = topics.groupBy("run").agg(F.count("*").alias("candidates"))
    counted = targets.groupBy("run", "trial").agg(F.count("*").alias("held"))
    trials = counted.join(small(t), "run").withColumn("bound", F.col("held") / F.col("candidates"))
    return Trials(facts.topics, topics, targets, trials.select("run", "trial", "candidates", "bound"))
