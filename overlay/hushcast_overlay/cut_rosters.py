"""What a roster says of how many relays there are: in a network that is cut into shards it lists none."""

from __future__ import annotations

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.sharding import Sharding, sharding_for


def is_cut(roster: Roster) -> bool:
    """Tell whether the network was cut into shards in the epoch of a roster, which lists no relay then."""
    return _sharding(roster) is not None


def count(roster: Roster) -> int:
    """Return how many relays there are in the epoch of a roster, in whatever shards."""
    sharding = _sharding(roster)
    return sharding.count if sharding is not None else len(roster.relays)


def _sharding(roster: Roster) -> Sharding | None:
    return sharding_for(roster.shards, roster.epoch // EPOCHS_A_DAY)
