"""Beliefs: whom each party takes for a message's publisher, a topic's subscribers, a participant's topics.

One row for each candidate that it distinguishes from the others, as in `posteriors`. Between a pseudonym and
its user stands Tor: a party that is not told who a pseudonym is takes all honest users for equally likely,
and writes no row. When things happen is not looked at, as nowhere in the analysis of circuits.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.central.party_sight import OF, PartySight


def publishers(sight: PartySight) -> DataFrame:
    """Return (run, party, trial, candidate, probability) of messages.

    A publication is what a party has of it: the server its id, a proxy what is sealed.
    """
    met, user = sight.publications.where("user is not null"), F.col("user").alias("candidate")
    return _shared(met.select(*OF, F.col("message").alias("trial"), user, F.lit(1).alias("votes")))


def subscribers(sight: PartySight) -> DataFrame:
    """Return (run, party, trial, candidate, probability) of topics.

    Of a topic that it recognises a party knows the subscribers. A topic that it does not recognise is one of
    those that it sees asked for without a name: any of these, equally likely.
    """
    met, user = sight.requests.where("user is not null"), F.col("user").alias("candidate")
    known = met.where("named").select(*OF, "topic", "user", F.lit(1).alias("votes"))
    votes = F.countDistinct("wish").alias("votes")
    asked = met.where("not named").groupBy(*OF, "user").agg(votes)
    unknown = sight.requests.where("not (knows and opens)").select(*OF, "topic").distinct()
    named = known.unionByName(unknown.join(asked, OF).select(*known.columns))
    return _shared(named.select(*OF, F.col("topic").alias("trial"), user, "votes"))


def subscriptions(sight: PartySight) -> DataFrame:
    """Return (run, party, trial, candidate, probability) of participants.

    Who asked for none of the topics that a party recognises asked for one of the others.
    """
    met = sight.requests.where("user is not null")
    topic, user = F.col("topic").alias("candidate"), F.col("user").alias("trial")
    named = _shared(met.where("named").select(*OF, user, topic, F.lit(1).alias("votes")))
    silent = met.groupBy(*OF, user).agg(F.max("named").alias("any")).where("not any")
    known = sight.requests.where("knows and opens").select(*OF, topic).distinct()
    never = silent.join(known, OF).select(*OF, "trial", "candidate", F.lit(0.0).alias("probability"))
    return named.unionByName(never)


def _shared(named: DataFrame) -> DataFrame:
    """Believe in all that are named by their shares of the votes."""
    whole = F.sum("votes").over(Window.partitionBy(*OF, "trial"))
    each = named.groupBy(*OF, "trial", "candidate").agg(F.max("votes").alias("votes"))
    return each.withColumn("probability", F.col("votes") / whole).drop("votes")
