"""Facts: what was published, asked for and delivered in runs of the central system, and who saw it pass.

What daemons observed is joined with whose it was, once; what a party sees of it is then a matter of its rows.

| table | columns |
|---|---|
| `requests` | (run, pseudonym, serial, owner, topic, wish, at_server, at_deliveries) |
| `publications` | (run, pseudonym, payload, message, owner, topic, at_server, at_publications, went, plain) |
| `deliveries` | (run, pseudonym, message, owner, at_server, at_deliveries, by_id, by_payload) |

A `wish` stands for a set of tokens. `went` tells whether a deliveries proxy passed the message on, `plain`
whether the server's key and what is public open its body; `by_id` and `by_payload`, how a delivery is seen to
be of a publication: the server has the id of both, proxies what is sealed, where it stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.central.parties import DELIVERIES, PUBLICATIONS, SERVER
from hushcast_analytics.checkpoints import kept, small


@dataclass(frozen=True)
class Facts:
    """The tables above, and `people` (run, node, role)."""

    people: DataFrame
    requests: DataFrame
    publications: DataFrame
    deliveries: DataFrame


def facts_of(observations: DataFrame, truths: DataFrame) -> Facts:
    """Return the facts of some runs."""
    started = truths.where("kind = 'started' and role is not null")
    people = kept(started.groupBy("run", "node").agg(F.first("role").alias("role")))
    passed = observations.where("kind in ('registered', 'handed', 'dispatched')")
    seen = kept(passed.join(small(people), ["run", "node"]))
    deliveries = _deliveries(seen, truths)
    publications = _publications(seen, truths, deliveries)
    return Facts(people, _requests(seen, truths), publications, _tied(deliveries, publications))


def _at(role: str) -> Column:
    return F.max(F.col("role") == role).alias(f"at_{role}")


def _requests(seen: DataFrame, truths: DataFrame) -> DataFrame:
    asked = truths.where("kind = 'registered'").select(
        "run", "pseudonym", "serial", "topic", F.col("node").alias("owner")
    )
    wish = F.xxhash64(F.array_sort(F.first("tokens")))
    came = (
        seen.where("kind = 'registered'")
        .groupBy("run", "pseudonym", "serial")
        .agg(wish.alias("wish"), _at(SERVER), _at(DELIVERIES))
    )
    return kept(came.join(asked.distinct(), ["run", "pseudonym", "serial"]))


def _publications(seen: DataFrame, truths: DataFrame, deliveries: DataFrame) -> DataFrame:
    handed = truths.where("kind = 'handed'").select("run", "pseudonym", "payload", "message")
    published = truths.where("kind = 'published'").select(
        "run", "message", "topic", F.col("node").alias("owner")
    )
    came = (
        seen.where("kind = 'handed'")
        .groupBy("run", "pseudonym", "payload")
        .agg(F.coalesce(F.max("readable"), F.lit(False)).alias("plain"), _at(SERVER), _at(PUBLICATIONS))
    )
    went = deliveries.where("at_deliveries").select("run", "message", F.lit(True).alias("went")).distinct()
    return kept(
        came.join(handed.distinct(), ["run", "pseudonym", "payload"])
        .join(published.distinct(), ["run", "message"])
        .join(went, ["run", "message"], "left")
        .fillna(value=False, subset=["went"])
    )


def _deliveries(seen: DataFrame, truths: DataFrame) -> DataFrame:
    drawn = truths.where("kind = 'introduced'").select("run", "pseudonym", F.col("node").alias("owner"))
    went = (
        seen.where("kind = 'dispatched'")
        .groupBy("run", "pseudonym", "payload")
        .agg(F.max("message").alias("message"), _at(SERVER), _at(DELIVERIES))
    )
    return kept(went.join(drawn.distinct(), ["run", "pseudonym"]))


def _tied(deliveries: DataFrame, publications: DataFrame) -> DataFrame:
    ids = publications.where("at_server").select("run", "message", F.lit(True).alias("by_id")).distinct()
    sealed = publications.where("at_publications").select("run", "payload", F.lit(True).alias("by_payload"))
    return (
        deliveries.join(ids, ["run", "message"], "left")
        .join(sealed.distinct(), ["run", "payload"], "left")
        # What is sent again is one delivery.
        .groupBy("run", "pseudonym", "message", "owner")
        .agg(
            *(
                F.max(F.coalesce(name, F.lit(False))).alias(name)
                for name in ("at_server", "at_deliveries", "by_id", "by_payload")
            )
        )
    )
