"""A network of the central system: one server, and proxies of two roles that whoever joins it is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey

ProxyRole = Literal["publications", "deliveries"]
"""What a proxy carries: to the server what is published, or to subscribers what they asked for."""

PROXY_ROLES: tuple[ProxyRole, ...] = get_args(ProxyRole)
"""Both: without a proxy of each nobody can publish, or subscribe."""

MAX_PROXIES = 32  # of both roles; one server has no work for more


class CentralNetwork(Network, frozen=True, tag="central-network/1"):
    """What all daemons of a network share. Proxies may come and go; the server stays."""

    server: PublicKey
    """The Ed25519 key that proves the server on links."""
    sealing_key: PublicKey
    """The X25519 key that introductions are sealed to."""


@dataclass(frozen=True)
class Proxy:
    """A proxy, as network.toml lists it."""

    key: PublicKey
    address: Address
    role: ProxyRole


def missing_roles(there: Iterable[ProxyRole]) -> list[ProxyRole]:
    """Return the roles that are not among those that are there."""
    found = set(there)
    return [role for role in PROXY_ROLES if role not in found]
