"""Places of next hops: where each is reached, by rosters, or by its own word in a lease."""

from __future__ import annotations

from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.hops import key_of


class HopPlaces:
    """Where the next hops of one relay are."""

    def __init__(self, leases: LeaseStore, shards: Shards) -> None:
        self._leases = leases
        self._shards = shards

    def locate(self, hop: Hop) -> Address | None:
        """Return where a next hop is reached now, if that is known; what a roster says goes first."""
        listed = self._shards.relay(key_of(hop))
        return self._leases.book.address_of(hop) if listed is None else listed.address

    def is_listed(self, hop: Hop) -> bool:
        """Tell whether a next hop is a relay that a roster lists near this one."""
        return self._shards.relay(key_of(hop)) is not None
