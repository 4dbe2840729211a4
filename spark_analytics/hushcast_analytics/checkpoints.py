"""Checkpointing: a table is computed once, however often it is used; and how tables meet in joins."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

LITTLE_DATA = "spark.hushcast.little"
"""The setting by which a session says that it was opened for little data."""


def kept(table: DataFrame) -> DataFrame:
    """Return a table that is computed once.

    Its plan is truncated, too: nested plans grow until planning takes longer than the work. It is kept by
    whoever computed it, and lost with an executor, unless `spark.checkpoint.dir` says where all machines see
    it. Stored serialised: before Spark stores rows as objects it estimates their size, which takes as long as
    computing them. Of much data on disk: of a hundred million rows Java's heap of 4 GB took no part beside
    others, whatever Spark reckoned.
    """
    table = little_in_one(table)
    if table.sparkSession.sparkContext.getCheckpointDir() is not None:
        return table.checkpoint()
    if is_little(table):
        return _hashed(table.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK))
    return table.localCheckpoint(storageLevel=StorageLevel.DISK_ONLY)


def let_go(table: DataFrame) -> None:
    """Free what is kept of a table that `kept` returned: nothing can be read of it, or of what it went into.

    Else it stays until Java happens to look for garbage, which with enough memory it does not.
    """
    plan: Any = table._jdf.queryExecution().optimizedPlan()  # without a hint
    plan.rdd().unpersist(False)


def little_in_one(table: DataFrame) -> DataFrame:
    """Return a table in one part where data is little, else as it is.

    Of tables that are in one part Spark knows that rows to be joined or grouped are together already: it
    moves none, and works in one stage.
    """
    return _hashed(table.coalesce(1)) if is_little(table) else table


def small(table: DataFrame) -> DataFrame:
    """Return a table that goes to wherever it is joined; where data is little, all is there already."""
    return table if is_little(table) else F.broadcast(table)


def is_little(table: DataFrame) -> bool:
    """Tell whether the session was opened for little data, and nobody wants it in several parts."""
    conf = table.sparkSession.conf
    return conf.get(LITTLE_DATA, "") == "true" and conf.get("spark.sql.shuffle.partitions") == "1"


def _hashed(table: DataFrame) -> DataFrame:
    """Return a table that is looked up by its keys where it is joined: else Spark sorts both sides."""
    return table.hint("shuffle_hash")
