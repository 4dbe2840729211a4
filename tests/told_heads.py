"""Heads as tests tell them: an outside with an inside, other insides, and sets with other rules."""

from __future__ import annotations

from typing import Any

import msgspec

from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.beacon import NOTHING
from hushcast_protocol.authorities.head_inside import BeaconState, HeadInside, inside_of
from hushcast_protocol.authorities.heads import AuthorityChange, Head
from hushcast_protocol.authorities.network_rules import rules_of
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import encode


def head_told(
    network: bytes,
    epoch: int,
    previous: bytes,
    authorities: Authorities,
    change: AuthorityChange | None = None,
    root: bytes = bytes(32),
    count: int = 0,
    draw: BeaconState = NOTHING,
    faults: tuple[bytes, ...] = (),
    shards: tuple[Sharding, ...] = (),
) -> Head:
    inside = HeadInside(root, count, draw, faults, shards)
    return Head(network, epoch, previous, authorities, change, encode(inside))


def retold(head: Head, **changes: Any) -> Head:
    """Return a head that says something else inside."""
    inside = msgspec.structs.replace(inside_of(head), **changes)
    return msgspec.structs.replace(head, inside=encode(inside))


def resized(authorities: Authorities, shard_size: int) -> Authorities:
    rules = rules_of(authorities.admission, shard_size, authorities.keeping, authorities.cover)
    return msgspec.structs.replace(authorities, rules=rules)
