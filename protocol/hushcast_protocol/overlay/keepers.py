"""Keepers: which relays keep what is published on a trunk of a day; whoever has the day's roster agrees.

The *candidates* of a day are known before the value that orders them, so that nobody chooses a name by what
it would keep. On a day that is whole they are the relays of the last roster of the day before, and the value
is that roster's digest; the directory that makes it, if it is alone, can try out rosters. On a day that is
cut they are the relays of a shard, and the value is the beacon by which the day was cut.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.base.roster import MAX_RELAYS, Roster
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import Bytes32, Counter, RelayId, Wire

RELAYS_FOR_A_KEEPER = (
    3  # candidates that there are for each keeper at least: of ten relays three keep, not six
)
MAX_DRAWS = 4096  # draws of a day that are remembered, by trunk; one takes some 3 ms of 2,000 candidates
MAX_CANDIDATES = 34 * MAX_RELAYS + 256  # bytes of a day's list


class Candidates(Wire, frozen=True, tag="candidates"):
    """The relays that may be keepers on a day, and by what they are drawn."""

    day: Counter
    value: Bytes32
    keeping: KeepingRule
    relays: Annotated[tuple[RelayId, ...], msgspec.Meta(max_length=MAX_RELAYS)]
    """In ascending order."""

    def draw(self, trunk: bytes) -> tuple[RelayId, ...]:
        """Return the keepers of a trunk (its token of the day), those with the lowest hashes."""
        count = min(self.keeping.keepers, len(self.relays) // RELAYS_FOR_A_KEEPER)
        seed = self.value + trunk

        def place(relay: RelayId) -> bytes:
            return digest(Domain.KEEPER, seed, relay)

        return tuple(heapq.nsmallest(count, self.relays, key=place))


def of_whole_day(day: int, rosters: Sequence[Roster]) -> Candidates | None:
    """Return the candidates of a day that is whole, by rosters in ascending order.

    `None` where by the rule of the day's first roster nobody keeps, and where these do not show which roster
    is the last of the day before: the one that the first names, by its digest. After a day that was cut,
    whose rosters list nobody, that first one counts itself.
    """
    begins = day * EPOCHS_A_DAY
    for last, first in itertools.pairwise(rosters):
        if last.epoch < begins <= first.epoch and first.previous == last.digest:
            if not first.keeping.keepers:
                return None
            listing = last if last.relays else first
            return _candidates(day, listing.digest, first.keeping, listing.relays)
    return None


def of_shard(
    day: int, sharding: Sharding, number: int, seated: Collection[RelayId], keeping: KeepingRule
) -> Candidates:
    """Return the candidates in one shard of a day that is cut: all that its slice lists."""
    shard = digest(Domain.KEEPER_DAY, sharding.beacon, number.to_bytes(8, "big"))
    return _candidates(day, shard, keeping, seated)


def _candidates(day: int, value: bytes, keeping: KeepingRule, relays: Collection[RelayId]) -> Candidates:
    by_day = digest(Domain.KEEPER_DAY, day.to_bytes(8, "big"), value)
    return Candidates(day, by_day, keeping, tuple(sorted(relays)))


class KeeperDraws:
    """The draws of one day, the last of them remembered."""

    def __init__(self, candidates: Candidates) -> None:
        self.candidates = candidates
        self._drawn: OrderedDict[bytes, tuple[RelayId, ...]] = OrderedDict()

    def of(self, trunk: bytes) -> tuple[RelayId, ...]:
        """Return the keepers of a trunk."""
        if (drawn := self._drawn.get(trunk)) is None:
            drawn = self._drawn[trunk] = self.candidates.draw(trunk)
            if len(self._drawn) > MAX_DRAWS:
                self._drawn.popitem(last=False)
        else:
            self._drawn.move_to_end(trunk)
        return drawn
