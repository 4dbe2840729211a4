"""Checkpointing: a table is computed once, however often it is used."""

from __future__ import annotations

from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame


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
    level = StorageLevel.MEMORY_AND_DISK if _is_little(table) else StorageLevel.DISK_ONLY
    return table.localCheckpoint(storageLevel=level)


def let_go(table: DataFrame) -> None:
    """Free what is kept of a table that `kept` returned: nothing can be read of it, or of what it went into.

    Else it stays until Java happens to look for garbage, which with enough memory it does not.
    """
    plan: Any = table._jdf.queryExecution().logical()
    plan.rdd().unpersist(False)


def little_in_one(table: DataFrame) -> DataFrame:
    """Return a table in one part where the session has one for each shuffle, else as it is.

    Of tables that are in one part Spark knows that rows to be joined or grouped are together already: it
    moves none, and works in one stage.
    """
    return table.coalesce(1) if _is_little(table) else table


def _is_little(table: DataFrame) -> bool:
    return table.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1"
