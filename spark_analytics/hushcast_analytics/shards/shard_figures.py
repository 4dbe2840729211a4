"""Figures of a network of shards: sizes, colluders in the worst, what a client pays."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

SHARES = (0.15, 0.20)
"""Shares of colluders in a shard above which shard-days are counted."""


@dataclass(frozen=True)
class ShardFigures:
    """What is asked of a network of shards."""

    shard_days: int
    above_15: int
    """Shard-days in which more than 15 % of the relays collude."""
    above_20: int
    smallest: int
    """Relays of the smallest shard of all days."""
    largest: int
    client_bytes: int
    """Bytes that a client fetches for one topic and day, in the mean of all shards."""


def figures(shard_days: DataFrame, fixed: int, a_relay: int) -> ShardFigures:
    """Return the figures; a client pays `fixed` bytes, and `a_relay` for each relay of its topic's shard."""
    share = F.try_divide("colluders", "relays")  # null where a shard has no relay
    above = (F.count_if(share > least) for least in SHARES)
    (row,) = shard_days.agg(F.count("*"), *above, F.min("relays"), F.max("relays"), F.avg("relays")).collect()
    shard_days_, first, second, smallest, largest, mean = row
    return ShardFigures(shard_days_, first, second, smallest, largest, round(fixed + a_relay * mean))
