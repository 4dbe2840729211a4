"""Keeping: a table computed once, however often it is used."""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame


def kept(table: DataFrame) -> DataFrame:
    """Return a table computed once and for all.

    Its plan is cut off, too: plans that hold one another grow until planning takes longer than the work. Kept
    as bytes: to weigh rows as objects, as Spark does before it keeps them so, takes as long as to make them.
    """
    return table.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
