"""A host's word: what it says of itself to every owner alike, once it has an address."""

from __future__ import annotations

from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.overlay.box_frames import BoxStanding
from hushcast_protocol.overlay.host_cards import HostCard, make_host_card


class HostWord:
    """What one relay says of itself as a host: owners need hold no roster that lists it."""

    def __init__(self, identity: Identity, shards: Shards) -> None:
        self._identity = identity
        self._relay = identity.seed.public()
        self._shards = shards
        self._card: HostCard | None = None

    def is_at(self, address: Address) -> None:
        """Say from now on that it is reached there."""
        self._card = make_host_card(self._identity.seed, self._identity.service, address)

    def standing(self, leases: tuple[bytes, ...], gave_way: int, sought: int | None = None) -> BoxStanding:
        """Return what an owner is told first, of its box and of the host."""
        assert self._card is not None  # connections come to an address
        listed = self._shards.relay(self._relay)
        difficulty = listed.difficulty if listed is not None else 0
        key = self._identity.parcel_key.public()
        return BoxStanding(leases, gave_way, self._card, key, difficulty, sought)
