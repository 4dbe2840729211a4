"""Shardings: what a head says of the shards of a day."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.wire import Bytes32, Counter, Wire


class Sharding(Wire, frozen=True, tag="sharding/1"):
    """What a head says of a day's shards."""

    day: Counter
    beacon: Bytes32
    bits: Annotated[int, msgspec.Meta(ge=0, le=MAX_BITS)]
    """k for 2^k shards; 0: from this day on the network is whole."""
    root: Bytes32
    """Of the leaves of all shards, in an epoch."""
    guides: Bytes32
    """Of the pieces of the guide, for the day."""
    count: Counter
    """Relays in these shards."""


def sharding_for(shards: Iterable[Sharding], day: int) -> Sharding | None:
    """Return the shards of a day by a head's: the newest up to it; `None` where the network is whole."""
    newest: Sharding | None = None
    for one in shards:
        if one.day <= day and (newest is None or one.day > newest.day):
            newest = one
    return newest if newest is not None and newest.bits else None
