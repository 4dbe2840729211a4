"""A network of the central system: one server, and proxies of two roles that whoever joins it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH, Calendar
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.wire import PublicKey, Wire, encode

ProxyRole = Literal["publications", "deliveries"]
"""What a proxy carries: to the server what is published, or to subscribers what they asked for."""

MAX_PROXIES = 32  # of both roles; one server has no work for more


class CentralNetwork(Wire, frozen=True, tag="central-network/1"):
    """What all daemons of a network share. Proxies may come and go; the server stays."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    profile: Annotated[str, msgspec.Meta(max_length=16)]
    epoch_seconds: Annotated[int, msgspec.Meta(ge=MIN_EPOCH, le=MAX_EPOCH)]
    server: PublicKey
    """The Ed25519 key that proves the server on links."""
    sealing_key: PublicKey
    """The X25519 key that introductions are sealed to."""

    @property
    def id(self) -> bytes:
        """32 bytes that salt topic keys and open every handshake."""
        return digest(Domain.NETWORK, encode(self))

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return Calendar(self.epoch_seconds)


@dataclass(frozen=True)
class Proxy:
    """A proxy, as network.toml lists it."""

    key: PublicKey
    address: Address
    role: ProxyRole
