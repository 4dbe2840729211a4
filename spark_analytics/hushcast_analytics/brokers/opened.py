"""Opened: what colluders find in what their brokers were shown, (copy, attack, owner, element), on Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.brokers.drawn import Drawn
from hushcast_analytics.brokers.playing import played
from hushcast_analytics.reading import Traces
from hushcast_protocol.brokers.privacy import read_privacy

NAMES = ["copy", "attack", "owner", "element"]
_KINDS = ("agreed", "compared", "asked", "advertised")
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
)


def opened(traces: Traces, draw: Drawn) -> DataFrame:
    """Return what is found, copy by copy, each by its colluders' own rows and their dictionary alone."""
    rows = traces.observations.where(F.col("kind").isin(*_KINDS))
    seen = rows.join(F.broadcast(draw.members), ["run", "node"])
    # A dictionary of words is of use where words are under pads.
    pads = draw.members.where(F.col("profile").contains("/paper")).select("run", "profile", "copy").distinct()
    known = draw.questions.where("known").select("run", F.col("element").alias("key")).distinct()
    words = known.join(pads, "run").select("copy", "profile", F.lit("word").alias("kind"), "key")
    table = seen.where("profile like 'full/%'").select(*_PLAYED).unionByName(words, allowMissingColumns=True)
    under_layers = table.groupBy("copy").applyInArrow(_played, ", ".join(f"{name} string" for name in NAMES))
    return under_layers.unionByName(_named(seen.where("profile in ('clear', 'hash')"), traces.truths))


def _played(table: pa.Table) -> pa.Table:
    rows = table.to_pylist()
    copy, privacy = rows[0]["copy"], read_privacy(rows[0]["profile"])
    words = [bytes.fromhex(row["key"]) for row in rows if row["kind"] == "word"]
    found = set(played(privacy.action, (row for row in rows if row["kind"] != "word"), words))
    cells = [(copy, one.attack, one.owner.hex(), one.element.hex()) for one in found]
    columns = zip(*cells, strict=True) if cells else ([] for _ in NAMES)
    return pa.table([pa.array(column, pa.string()) for column in columns], NAMES)


def _named(seen: DataFrame, truths: DataFrame) -> DataFrame:
    """Return what an edge broker reads that is shown what anybody can compute of a word.

    It knows a client by its key, and what it asks by a name; whose these are is what the truth says.
    """
    whose = truths.where("kind = 'subscribed'").select(
        "run", F.col("node").alias("owner"), F.col("mailbox").alias("name")
    )
    read = seen.where("kind = 'asked'").select("run", "copy", "name").join(whose, ["run", "name"])
    return read.select("copy", F.lit("dictionary").alias("attack"), "owner", F.col("name").alias("element"))
