"""Keepers: which relays keep what is published on a trunk of a day, the same by whoever draws them.

The *candidates* of a day are older than the value that orders them, so that nobody chooses a name by what it
would keep. Authorities agree on both (`authorities/candidate_days.py`); a directory alone can try out heads.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict

from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.candidates import CandidateList

RELAYS_FOR_A_KEEPER = (
    3  # candidates that there are for each keeper at least: of ten relays three keep, not six
)
MAX_DRAWS = 4096  # draws of a day that are remembered, by trunk; one takes some 3 ms of 2,000 candidates


class KeeperDraws:
    """The draws from one candidate list, the last of them remembered."""

    def __init__(self, candidates: CandidateList) -> None:
        self._places = {one.relay: one.address for one in candidates.relays}
        self._value = candidates.value
        self._count = min(candidates.keepers, len(self._places) // RELAYS_FOR_A_KEEPER)
        self._drawn: OrderedDict[bytes, tuple[RelayId, ...]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many keep each trunk."""
        return self._count

    def of(self, trunk: bytes) -> tuple[RelayId, ...]:
        """Return the keepers of a trunk (its token of the day): those with the lowest hashes."""
        if (drawn := self._drawn.get(trunk)) is None:
            seed = self._value + trunk

            def place(relay: RelayId) -> bytes:
                return digest(Domain.KEEPER, seed, relay)

            drawn = self._drawn[trunk] = tuple(heapq.nsmallest(self._count, self._places, key=place))
            if len(self._drawn) > MAX_DRAWS:
                self._drawn.popitem(last=False)
        else:
            self._drawn.move_to_end(trunk)
        return drawn

    def address(self, keeper: RelayId) -> Address:
        """Return where one of the candidates was when the day began."""
        return parse_address(self._places[keeper])
