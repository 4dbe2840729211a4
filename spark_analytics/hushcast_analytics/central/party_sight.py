"""Sight: what each party sees of the facts, what it knows of topics, and whom it knows behind a pseudonym.

The ground truth is granted to a party in three things alone: what its own users did; who a proxy's users are,
where it is told; and the topic of what is under a token, where it has the server's key and knows the topic,
for then it computes the token.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.central.facts import Facts
from hushcast_analytics.central.parties import DELIVERIES, PUBLICATIONS, SERVER, USER
from hushcast_analytics.checkpoints import kept, small

OF = ["run", "party"]


class PartySight:
    """The facts that are of honest users, once for each party, with `party` and some columns more.

    | column | meaning |
    |---|---|
    | `seen` | a daemon of the party's saw it |
    | `knows` | the party knows the topic |
    | `named` | the party has the server's key as well, and saw it: it recognises the topic |
    | `user` | the owner, where the party is told who the pseudonym is; else null |
    | `opens` | the party has the server's key |
    """

    def __init__(self, facts: Facts, truths: DataFrame, members: DataFrame, guessed: Column) -> None:
        """`members` are as `parties.members_of` returns them; `guessed` tells which topics guessers know."""
        theirs = members.where(F.col("role") == USER)
        self._own = small(theirs.select(*OF, F.col("node").alias("owner")))
        self._each = small(
            members.groupBy(*OF, "opens", "told", "guesses").agg(
                *(F.max(F.col("role") == role).alias(role) for role in (SERVER, PUBLICATIONS, DELIVERIES))
            )
        )
        did = truths.where("kind in ('subscribed', 'published')").select(
            "run", F.col("node").alias("owner"), "topic"
        )
        own = did.join(self._own, ["run", "owner"]).select(*OF, "topic")
        topics = facts.requests.select("run", "topic").union(facts.publications.select("run", "topic"))
        guessers = self._each.where("guesses").select(*OF)
        could = topics.distinct().where(guessed).join(guessers, "run").select(*OF, "topic")
        self._known = kept(own.union(could).distinct().withColumn("knows", F.lit(True)))
        self.requests = self._seen_by(facts.requests, DELIVERIES)
        self.publications = self._seen_by(facts.publications, PUBLICATIONS)
        self.deliveries = self._honest(facts.deliveries)

    def _honest(self, table: DataFrame) -> DataFrame:
        return table.join(self._each, "run").join(self._own, [*OF, "owner"], "left_anti")

    def _seen_by(self, table: DataFrame, proxies: str) -> DataFrame:
        met = F.col(proxies) & F.col(f"at_{proxies}")
        seen = met | (F.col(SERVER) & F.col(f"at_{SERVER}"))
        return kept(
            self._honest(table)
            .join(self._known, [*OF, "topic"], "left")
            .fillna(value=False, subset=["knows"])
            .withColumn("seen", seen)
            .withColumn("named", F.col("knows") & F.col("opens") & F.col("seen"))
            .withColumn("user", F.when(F.col("told") & met, F.col("owner")))
        )
