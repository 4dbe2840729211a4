"""Draws of shards: every relay's shard on every day, by the protocol's own function, counted by shard.

shard_days(spark, ShardScenario(relays=1_000_000, shards=2048, days=30)): a row for each shard and day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics.errors import TracesError
from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.shards.assignment import shard_of_relay

RELAYS_A_PIECE = 20_000  # some 0.05 s of hashing a day
_COLUMNS = "day long, shard long, relays long, colluders long"


@dataclass(frozen=True)
class ShardScenario:
    """A network; equal values draw equal shards, on any number of machines. `TracesError` if impossible.

    | field | meaning |
    |---|---|
    | `relays` | with a seat on every day |
    | `shards` | a power of two |
    | `days` | each with a beacon of its own |
    | `colluding` | share of the relays, from 0 to 1, whichever they are |
    """

    relays: int
    shards: int
    days: int = 1
    colluding: float = 0.1
    seed: int = 1

    def __post_init__(self) -> None:
        if self.shards.bit_count() != 1 or self.shards > 2**MAX_BITS:
            raise TracesError(f"--shards {self.shards}: shards are a power of two, {2**MAX_BITS} at most")

    @property
    def bits(self) -> int:
        """k of 2^k shards."""
        return self.shards.bit_length() - 1

    @property
    def colluders(self) -> int:
        """How many relays collude: the first ones, for keys say nothing of where they will be."""
        return round(self.colluding * self.relays)

    def beacon(self, day: int) -> bytes:
        """Return the beacon of a day."""
        return self._drawn(f"beacon {day}")

    def relay(self, number: int) -> bytes:
        """Return the key of a relay."""
        return self._drawn(f"relay {number}")

    def _drawn(self, what: str) -> bytes:
        return blake2b(f"{self.seed} {what}".encode(), digest_size=32).digest()


def shard_days(spark: SparkSession, asked: ShardScenario) -> DataFrame:
    """Return, for each day and shard, how many relays it has and how many of them collude."""
    counted = piece_by_piece(spark, asked.relays, lambda relays: _counted(asked, relays), _COLUMNS)
    sums = (F.sum(name).alias(name) for name in ("relays", "colluders"))
    return counted.groupBy("day", "shard").agg(*sums)


def piece_by_piece(
    spark: SparkSession, relays: int, work: Callable[[range], Iterator[pa.RecordBatch]], columns: str
) -> DataFrame:
    """Return what `work` makes of all relays, given the numbers of some of them at a time."""

    def of_pieces(numbered: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbered:
            for piece in batch.column(0).to_pylist():
                first = piece * RELAYS_A_PIECE
                yield from work(range(first, min(first + RELAYS_A_PIECE, relays)))

    pieces = -(-relays // RELAYS_A_PIECE)
    return spark.range(0, pieces, 1, pieces).mapInArrow(of_pieces, columns)


def _counted(asked: ShardScenario, numbers: range) -> Iterator[pa.RecordBatch]:
    """Count some of the relays, day after day."""
    relays = [asked.relay(number) for number in numbers]
    colluding = max(0, asked.colluders - numbers.start)
    number = np.arange(asked.shards)
    for day in range(asked.days):
        beacon, bits = asked.beacon(day), asked.bits
        shards = np.fromiter((shard_of_relay(beacon, relay, bits) for relay in relays), np.int64, len(relays))
        counts = (np.bincount(some, minlength=asked.shards) for some in (shards, shards[:colluding]))
        columns = (np.full(asked.shards, day), number, *counts)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column.astype(np.int64)) for column in columns],
            ["day", "shard", "relays", "colluders"],
        )
