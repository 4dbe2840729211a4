"""Reading of shards: what is made of the parts that are shown; simulations do each once for all daemons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from hushcast_protocol.base.roster import Network, Relay, Roster
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.guides import draw_guides
from hushcast_protocol.shards.neighbours import roster_of_shard
from hushcast_protocol.shards.shard_requests import ShownSlice
from hushcast_protocol.shards.slices import Leaf, Shard, read_slice

ReadShown = Callable[[ShownSlice, Leaf, Sharding, Network], tuple[Shard, ShownSlice]]
MakeRoster = Callable[[Mapping[RelayId, Relay], Leaf, Roster, Roster | None], Roster]
DrawGuides = Callable[[bytes, Mapping[RelayId, Relay]], frozenset[RelayId]]


def read_shown(
    shown: ShownSlice, leaf: Leaf, sharding: Sharding, network: Network
) -> tuple[Shard, ShownSlice]:
    """Return the relays of a slice as `read_slice` does, and what was shown, to be kept."""
    return read_slice(shown.body, leaf, sharding, network), shown


def guides_of(beacon: bytes, seated: Mapping[RelayId, Relay]) -> frozenset[RelayId]:
    """Return who of the relays of a slice guides to its shard, on the day of a beacon."""
    return frozenset(relay for relay, _ in draw_guides(beacon, ((relay, b"", 0) for relay in seated)))


class ShardReader(NamedTuple):
    """How slices and leaves are read, and what is drawn from them."""

    slice: ReadShown = read_shown
    roster: MakeRoster = roster_of_shard
    guides: DrawGuides = guides_of


READING = ShardReader()
