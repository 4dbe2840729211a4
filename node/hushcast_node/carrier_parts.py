"""Parts: what a carrier adapter is made of; one value for each carrier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hushcast_directory.client.pinned_directories import CHECKS, PinnedDirectories, RosterChecks
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.shards.shard_reader import READING, ShardReader
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.central.network import CentralNetwork, Proxy
from hushcast_protocol.central.profile import CentralProfile
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_protocol.overlay.profile import Profile
from hushcast_protocol.overlay.ready_slots import NONE_READY, ReadyRule
from hushcast_protocol.overlay.tree_rule import TreeRule


@dataclass(frozen=True)
class OverlayParts:
    """What the overlay's adapter is made of."""

    NAME: ClassVar = "overlay"
    """What settings call this carrier."""
    network: Network
    profile: Profile
    directories: PinnedDirectories
    identity: Identity | None
    """A relay's keys; a client has none."""
    checks: RosterChecks = CHECKS
    reading: ShardReader = READING
    ready: ReadyRule = NONE_READY
    """How many connections it holds ready for what it will publish."""
    cover: HoldRule | None = None
    """How it holds messages under cover; `None`: it has no cover."""
    reads_under_cover: bool = False
    """Whether it may subscribe there."""
    trees: TreeRule = TreeRule.AUTO
    """Where its subscriptions have trees."""


@dataclass(frozen=True)
class CentralParts:
    """What the central system's adapter is made of."""

    NAME: ClassVar = "central"
    """What settings call this carrier."""
    network: CentralNetwork
    profile: CentralProfile
    proxies: Sequence[Proxy]


@dataclass(frozen=True)
class BrokersParts:
    """What the brokers' adapter is made of."""

    NAME: ClassVar = "brokers"
    """What settings call this carrier."""
    network: BrokersNetwork
    root: Address
    edge: PublicKey | None = None
    """The one edge broker that may be used; any of the tree unless given."""
    member: Seed | None = None
    """The key that charters of communities admit this daemon by, in a network that has any."""
    community: PublicKey | None = None
    """The community that it is in, by its keeper's key."""


CarrierParts = OverlayParts | CentralParts | BrokersParts
