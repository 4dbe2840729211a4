"""A kept shard: one shard of one cut as a daemon holds it, from the heads that tell of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import trio

from hushcast_overlay.neighbourhood import Neighbourhood
from hushcast_overlay.shards.shard_reader import MakeRoster
from hushcast_protocol.base.roster import Relay, Roster
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.neighbours import check_same_slice
from hushcast_protocol.shards.slices import Leaf


@dataclass(eq=False, slots=True)
class KeptShard:
    """One shard of one cut, as it is held."""

    day: int
    """Of the cut, by which the shard's number is meant."""
    number: int
    is_own: bool
    """Whether this daemon's own relay belongs there: authorities are asked then, and it is served."""
    near: Neighbourhood
    used: float
    """When it was last asked for, by `Environment.elapsed`."""
    seated: dict[RelayId, Relay] = field(default_factory=dict)
    """All that the slice lists, in its order."""
    leaf: Leaf | None = None
    """The last that was taken, once the slice is there."""
    problem: str | None = None
    tried: trio.Event = field(default_factory=trio.Event)
    """Set when it is there, or was asked for in vain."""
    due: float = 0.0
    """When the next leaf is taken; infinite while no head tells of one."""
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    """Of what is fetched of it; cancelled where it is dropped."""

    def take_leaf(self, leaf: Leaf, head: Roster, make: MakeRoster) -> None:
        """Take who is there in the epoch of a head; raises a `PeerError`."""
        if self.leaf is not None:
            check_same_slice(self.leaf, leaf)
        roster = make(self.seated, leaf, head, self.near.newest)
        self.near.hold(self.near.next_standing(roster))
        self.leaf = leaf


def sharding_in(head: Roster, day: int) -> Sharding | None:
    """Return what a head says of the cut made for a day, `None` where it does not tell of it."""
    return next((one for one in head.shards if one.day == day and one.bits), None)


def telling(heads: Iterable[Roster], day: int) -> list[tuple[Roster, Sharding]]:
    """Return the heads that tell of the cut made for a day, each with what it says, in their order."""
    return [(head, one) for head in heads if (one := sharding_in(head, day)) is not None]
