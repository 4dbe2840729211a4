"""Suspects: whom somebody names who sees in which epochs relays, and one mailbox, are there.

A relay's mailbox is there when the relay is. Over the epochs that one mailbox lives, the relay is named if no
other was there in the same ones. A mailbox that stays shows ever more; a fresh one each day, in another shard
and under another address, shows one day, and nothing ties it to the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from hushcast_analytics.errors import TracesError
from hushcast_analytics.generator.presence import there_by_epoch
from hushcast_analytics.shards.shard_draws import ShardScenario, piece_by_piece
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY

_COLUMNS = "relay long, day long, fresh long, staying long"


@dataclass(frozen=True)
class ChurnModel:
    """Mean epochs that a relay is up, and away, in turn; each lasts a geometrically distributed time."""

    up: float
    down: float

    def __post_init__(self) -> None:
        if self.up < 1 or self.down < 1:
            raise TracesError("--up and --down are epochs, 1 at least: nobody sees less of a relay")


@dataclass(frozen=True)
class SuspectShares:
    """Shares of all relays that are named, were each to subscribe."""

    named_fresh: float
    """On any of the days, by one of the mailboxes of a day each."""
    named_staying: float
    """By the end of the last day, by one mailbox that stays."""


def named(spark: SparkSession, asked: ShardScenario, moving: ChurnModel) -> SuspectShares:
    """Return who is named after the days asked for."""
    seen = patterns(spark, asked, moving)
    alone = F.count("*").over(Window.partitionBy("day", "fresh")) == 1
    fresh = seen.select("relay", alone.alias("alone")).where("alone").agg(F.countDistinct("relay"))
    staying = seen.where(F.col("day") == asked.days - 1).groupBy("staying").count().where("count = 1")
    (row,) = fresh.collect()
    return SuspectShares(row[0] / asked.relays, staying.count() / asked.relays)


def patterns(spark: SparkSession, asked: ShardScenario, moving: ChurnModel) -> DataFrame:
    """Return, for each relay and day, what stands for the epochs in which it was there.

    `fresh` for those of the day; `staying` for all from the first day on.
    """
    return piece_by_piece(spark, asked.relays, lambda relays: _seen(asked, moving, relays), _COLUMNS)


def _seen(asked: ShardScenario, moving: ChurnModel, numbers: range) -> Iterator[pa.RecordBatch]:
    relays = np.asarray(numbers)
    there = there_by_epoch(asked.seed, relays, moving.up, moving.down)
    staying = np.zeros(len(relays), np.int64)
    for day in range(asked.days):
        fresh = np.zeros(len(relays), np.int64)
        for now in islice(there, EPOCHS_A_DAY):
            fresh = fresh << 1 | now
        staying = _joined(staying, fresh)
        columns = (relays, np.full(len(relays), day), fresh, staying)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column.astype(np.int64)) for column in columns], ["relay", "day", "fresh", "staying"]
        )


def _joined(before: npt.NDArray[np.int64], today: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return 8 bytes that stand for both; among a million two are alike by chance once in forty million."""
    pairs = np.stack((before, today), axis=-1)
    hashed = (blake2b(pair.tobytes(), digest_size=8).digest() for pair in pairs)
    return np.frombuffer(b"".join(hashed), np.int64)
