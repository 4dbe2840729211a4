"""Adversaries: which relays collude, and their view: the observations of their own daemons, nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept, let_go, small

Choice = Literal["random", "degree", "sybil"]


@dataclass(frozen=True)
class Adversary:
    """Colluding relays (VB §4), the same in every epoch: one adversary for each of the `shares`.

    `chosen` tells which: `random` ones, those with the highest `degree` (who exchange most with others), or a
    `sybil` block (relays one after another in the order of their names, from a random one on). Names of
    `clients` may be the adversary's, too, and so many `users`, drawn among all who subscribe: what comes to
    them, the trees that they planned and what they publish is the adversary's (VB §3). An `active` adversary
    knows what it published itself, and at which relays: so it can drop messages at all of them and watch. One
    that has the `directory` knows all rosters; one without it, those of epochs in which one of its own
    daemons took a roster.

    It knows a share `topics_known` of the topics, from 0 to 1: an open one by its name, which can be guessed,
    a private one by its link. Of a topic that it knows it computes the tokens of every day, finds the
    messages, and tests its own leases; of another it recognises nothing.
    """

    shares: tuple[float, ...]
    chosen: Choice = "random"
    active: bool = False
    directory: bool = True
    clients: tuple[str, ...] = ()
    seed: int = 1
    topics_known: float = 1.0
    users: int = 0

    def __post_init__(self) -> None:
        if not self.shares or not all(0 <= share < 1 for share in self.shares):
            raise ValueError(f"shares of colluding relays lie from 0 to below 1: {self.shares}")
        if not 0 <= self.topics_known <= 1:
            raise ValueError(f"the share of topics known lies from 0 to 1: {self.topics_known}")
        if self.users < 0:
            raise ValueError(f"there are no users or some: {self.users}")


def colluders(adversary: Adversary, relays: DataFrame, observations: DataFrame) -> DataFrame:
    """Return (run, node, share): for each share its floor(share · relays) relays of each run.

    `relays` has the columns (run, node). The choice depends on the seed and on names, not on the order of
    rows or on partitions; a larger share has the relays of a smaller one and more. `observations` are read
    for `degree` alone, by which the adversary chose beforehand.
    """
    chance = F.xxhash64(F.lit(adversary.seed), "run", "node")
    order: list[Column] = [chance, F.col("node")]
    if adversary.chosen == "degree":
        met = observations.where("kind in ('received', 'sent', 'installed')").select(
            "run", "node", F.explode(F.array("previous", "next")).alias("peer")
        )
        degrees = (
            met.where("peer is not null").groupBy("run", "node").agg(F.countDistinct("peer").alias("met"))
        )
        relays = relays.join(degrees, ["run", "node"], "left").fillna(0, ["met"])
        order = [F.col("met").desc(), *order]
    elif adversary.chosen == "sybil":
        # A block that begins at a random place of the circle of names: those just above a random point.
        start = F.substring(F.md5(F.concat(F.lit(f"{adversary.seed} "), "run")), 1, 16)
        order = [F.col("node") < start, F.col("node")]
    ranked = relays.select(
        "run",
        "node",
        F.row_number().over(Window.partitionBy("run").orderBy(*order)).alias("place"),
        F.count("*").over(Window.partitionBy("run")).alias("relays"),
    )
    within = F.col("place") <= F.floor(F.col("share") * F.col("relays"))
    each = ranked.withColumn("share", F.explode(F.array(*(F.lit(share) for share in adversary.shares))))
    return each.where(within).select("run", "node", "share")


def colluding_users(adversary: Adversary, truths: DataFrame, theirs: DataFrame) -> DataFrame:
    """Return (run, node, share): for each share the `users` of each run, besides `theirs` (run, node, share).

    All who subscribe, if they are fewer. The choice depends on the seed and on names.
    """
    shares = F.explode(F.array(*(F.lit(share) for share in adversary.shares)))
    subscribed = truths.where("kind = 'subscribed'").select("run", "node").distinct()
    others = subscribed.withColumn("share", shares).join(theirs, ["run", "node", "share"], "left_anti")
    chance = F.xxhash64(F.lit(adversary.seed), F.lit("user"), "run", "node")
    place = F.row_number().over(Window.partitionBy("run", "share").orderBy(chance, "node"))
    return others.withColumn("place", place).where(F.col("place") <= adversary.users).drop("place")


class SharedEvidence:
    """What attacks go by, each table computed when it is first asked for; views with the same questions share
    it. It depends on nothing else that views differ in, such as candidates. Threads may ask for it.
    """

    def __init__(self) -> None:
        self._found: dict[str, DataFrame] = {}
        self._lock = threading.RLock()

    def once(self, name: str, find: Callable[[], DataFrame]) -> DataFrame:
        """Return what `find` does, computed at the first call."""
        with self._lock:
            if name not in self._found:
                self._found[name] = kept(find())
            return self._found[name]

    def forget(self) -> None:
        """Free all tables; they are computed again where they are asked for."""
        with self._lock:
            while self._found:
                let_go(self._found.popitem()[1])


@dataclass(frozen=True)
class AdversaryView:
    """All the data that an adversary uses for questions of one kind.

    | field | columns |
    |---|---|
    | `observations` | those of its own daemons, as in `trace_schemas.OBSERVATIONS` |
    | `members` | (run, node): its relays |
    | `rosters` | (run, epoch, relay): public |
    | `questions` | (run, trial, token): what it is asked about and knows; `token` is what the attack says |
    | `candidates` | (run, candidate): whom it may name, all of them honest |
    | `own` | (run, topic, message, origin): what it published itself; empty unless it is active |
    | `planned` | (run, topic, relay, next): links of trees of its own subscriptions; None if there are none |

    `relays`, `depth` and `shards` are public facts of the network: how many relays a tree spans, its levels,
    and how many shards of so many relays there are. `kinds` are those of its observations, None where nobody
    looked.
    """

    observations: DataFrame
    members: DataFrame
    rosters: DataFrame
    questions: DataFrame
    candidates: DataFrame
    own: DataFrame
    relays: int
    depth: int
    shards: int = 1
    planned: DataFrame | None = None
    evidence: SharedEvidence = field(default_factory=SharedEvidence, compare=False)
    kinds: frozenset[str] | None = None

    def saw(self, kind: str) -> bool:
        """Tell whether there may be an observation of a kind."""
        return self.kinds is None or kind in self.kinds

    def once(self, name: str, find: Callable[[], DataFrame]) -> DataFrame:
        """Return what `find` does, computed at the first call: evidence that several attacks go by."""
        return self.evidence.once(name, find)


def seen_by(observations: DataFrame, members: DataFrame) -> DataFrame:
    """Return the observations that the adversary's own daemons wrote."""
    return observations.join(small(members), ["run", "node"], "left_semi")


def published_by(truths: DataFrame, members: DataFrame) -> DataFrame:
    """Return (run, topic, message, origin) of what the adversary's own daemons published: it knows that."""
    own = truths.where("kind = 'published'").join(small(members), ["run", "node"], "left_semi")
    return own.select("run", "topic", "message", F.explode("origins").alias("origin"))


def planned_by(truths: DataFrame, members: DataFrame) -> DataFrame:
    """Return (run, topic, relay, next) of the trees that the adversary's own daemons planned.

    `members` are (run, node, copy). Next to the root is its mailbox or, where roots are listed, the planner.
    """
    trees = truths.where("kind = 'installed' and tree is not null")
    own = trees.join(small(members), ["run", "node"])
    links = own.select(F.col("copy").alias("run"), "node", "topic", "mailbox", F.explode("tree"))
    roots = F.array("mailbox", "node")
    above = F.explode(F.when(F.col("value").isNull(), roots).otherwise(F.array("value")))
    return links.select("run", "topic", F.col("key").alias("relay"), above.alias("next")).distinct()


def known_to(adversary: Adversary, topics: DataFrame, name: str) -> DataFrame:
    """Return the rows of topics that the adversary knows, of a table with `run` and a topic's `name`."""
    return topics.where(is_known(adversary.topics_known, adversary.seed, name))


def is_known(share: float, seed: int, name: str) -> Column:
    """Tell whether who knows a share of all topics knows the one in the column `name`, of the run in `run`.

    Drawn by the seed and the topic; a larger share has the topics of a smaller one and more.
    """
    if share == 1:
        return F.lit(True)
    # All copies of a run, `run@share`, are of one network.
    run = F.regexp_replace("run", "@[^@]*$", "")
    chance = F.pmod(F.xxhash64(F.lit(seed), F.lit("topic"), run, name), F.lit(1 << 40))
    return chance < F.lit(int(share * (1 << 40)))


def rosters_of(observations: DataFrame, adversary: Adversary, members: DataFrame) -> DataFrame:
    """Return (run, epoch, relay) of the rosters that the adversary has.

    A roster is public and one daemon writes it down for all; with the directory, the adversary has each.
    Without, it has those of the epochs in which one of its own daemons took a roster.
    """
    taken = observations.where("kind = 'roster'")
    listed = (
        taken.where("listed is not null")
        .select("run", "epoch", F.explode("listed").alias("relay"))
        .distinct()
    )
    if adversary.directory:
        return listed
    return listed.join(
        seen_by(taken, members).select("run", "epoch").distinct(), ["run", "epoch"], "left_semi"
    )
