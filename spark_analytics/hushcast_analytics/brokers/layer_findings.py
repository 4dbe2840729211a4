"""Findings under layers: what colluders find in what their brokers were shown, on Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.brokers.colluder_draws import ColluderDraws
from hushcast_analytics.brokers.layer_attacks import played
from hushcast_analytics.checkpoints import small
from hushcast_analytics.trace_files import Traces
from hushcast_protocol.brokers.privacy import read_privacy

NAMES = ["copy", "attack", "owner", "element", "item"]
_KINDS = ("agreed", "compared", "asked", "advertised")
_SEALED = "profile in ('community', 'group')"
_PLAYED = (
    "copy",
    "profile",
    "kind",
    "node",
    "own",
    "other",
    "key",
    "path",
    "client",
    "filter",
    "child",
    "show",
    "made",
)


def opened(traces: Traces, draw: ColluderDraws) -> DataFrame:
    """Return (copy, attack, owner, element, item): what is found by colluders' own rows and dictionary."""
    rows = traces.observations.where(F.col("kind").isin(*_KINDS))
    invented = traces.truths.where("kind = 'invented'").select("run", "node", "by")
    rows = rows.join(small(invented), ["run", "node"], "left").withColumn("made", F.col("by").isNotNull())
    seen = rows.withColumn("node", F.coalesce("by", "node")).join(small(draw.members), ["run", "node"])
    copies = draw.copies.where("profile like 'full/%'")
    known = draw.questions.where("known").select("run", F.col("element").alias("key")).distinct()
    words = known.join(small(copies), "run").select("copy", "profile", F.lit("word").alias("kind"), "key")
    table = seen.where("profile like 'full/%'").select(*_PLAYED).unionByName(words, allowMissingColumns=True)
    under_layers = table.groupBy("copy").applyInArrow(_played, ", ".join(f"{name} string" for name in NAMES))
    # A member of the community has its key, which a colluding broker has of any client of theirs.
    keyed = draw.members.where(f"{_SEALED} and is_client").select("copy").distinct()
    sealed = seen.where(_SEALED).join(small(keyed), "copy", "left_semi")
    clear = _by_name(seen.where("profile in ('clear', 'hash')"), traces.truths)
    return under_layers.unionByName(clear).unionByName(_by_client(sealed, traces.truths, draw))


def _played(table: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    copy, privacy = rows[0]["copy"], read_privacy(rows[0]["profile"])
    words = [bytes.fromhex(row["key"]) for row in rows if row["kind"] == "word"]
    found = set(played(privacy.action, (row for row in rows if row["kind"] != "word"), words))
    cells = [(copy, one.attack, *(value.hex() for value in one[1:])) for one in found]
    columns = zip(*cells, strict=True) if cells else ([] for _ in NAMES)
    return pa.table([pa.array(column, pa.string()) for column in columns], NAMES)


def _by_name(seen: DataFrame, truths: DataFrame) -> DataFrame:
    """Return what an edge broker reads that is shown what anybody can compute of a word.

    It knows a client by its key, and what it asks by a name; whose these are is what the truth says.
    """
    whose = truths.where("kind = 'subscribed'").select(
        "run", F.col("node").alias("owner"), F.col("mailbox").alias("element")
    )
    asked = seen.where("kind = 'asked'").select("run", "copy", F.col("name").alias("element"))
    return _read(asked.join(whose, ["run", "element"]), "dictionary")


def _by_client(seen: DataFrame, truths: DataFrame, draw: ColluderDraws) -> DataFrame:
    """Return what an edge broker reads that can open all that its clients ask for."""
    whose = truths.where("kind = 'attached'").select("run", "client", "node").distinct()
    asked = seen.where("kind = 'asked'").select("run", "copy", "client").distinct()
    wanted = asked.join(whose, ["run", "client"]).join(draw.questions, ["run", "node"])
    return _read(wanted, "member-key")


def _read(found: DataFrame, attack: str) -> DataFrame:
    nothing = F.lit(None).cast("string").alias("item")
    return found.select("copy", F.lit(attack).alias("attack"), "owner", "element", nothing)
