"""Settings of a node: every one declared once; what could leak an address is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from hushcast_brokers.network_file import BrokersNetworkSection
from hushcast_central.network_file import CentralNetworkSection
from hushcast_directory.authority_sections import check_set, members_of
from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_local.settings import CoverageSection, InboxSection
from hushcast_node.carrier_parts import BrokersParts, CentralParts, OverlayParts
from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_protocol.overlay.profile import MAX_DEPTH, MAX_TREES, PROFILES, Profile, Root
from hushcast_protocol.overlay.ready_slots import ReadyRule
from hushcast_protocol.overlay.tree_rule import TreeRule
from hushcast_runtime.processes.config import (
    AuthoritySection,
    KeyText,
    NetworkSection,
    PathText,
    Section,
    check_path,
    reachable,
)
from hushcast_runtime.processes.testnet_section import TestnetDaemonSettings

# Of what is published, and of each subscription: each is a file, and a circuit of Tor's.
MAX_READY_CONNECTIONS = 16
MAX_READY_MINUTES = 120  # in the mean, 192 at most: relays end what says nothing for four hours


class JoinedNetworkSection(
    NetworkSection, frozen=True, kw_only=True, tag_field="carrier", tag=OverlayParts.NAME
):
    """An overlay, and where its directory is, or its directories are."""

    directory: str | None = None
    """The directory's address, `….onion:7411`."""
    directory_key: KeyText | None = None
    """The directory's public key, 64 hexadecimal digits."""
    authorities: Annotated[tuple[AuthoritySection, ...], msgspec.Meta(max_length=MAX_AUTHORITIES)] = ()
    """The directories, where there are several."""
    quorum: Annotated[int, msgspec.Meta(ge=1, le=MAX_AUTHORITIES)] | None = None
    """How many of them agree on a roster: more than half."""

    def check_named(self) -> None:
        """Raise `UsageError` unless one directory is named, or several that can agree."""
        if not self.authorities:
            if self.quorum is not None:
                raise UsageError("network.quorum: it is of several directories: add network.authorities")
            for key in ("directory", "directory_key"):
                if getattr(self, key) is None:
                    raise UsageError(f"network.{key}: this is missing: `hushcast join network.toml` adds it")
            return
        if self.directory is not None or self.directory_key is not None:
            raise UsageError("network.directory: with network.authorities take it and directory_key out")
        if self.quorum is None:
            raise UsageError("network.quorum: this is missing: how many of the directories agree, over half")
        check_set(self.authorities, self.quorum, "network.authorities", "network.quorum")

    def pinned(self, transport: str) -> PinnedDirectories:
        """Return the directories, if the transport may reach them; raise `UsageError`."""
        self.check_named()
        if not self.authorities:
            assert self.directory is not None
            assert self.directory_key is not None
            address = reachable("network.directory", self.directory, transport)
            return PinnedDirectories.alone(address, bytes.fromhex(self.directory_key))
        assert self.quorum is not None
        return PinnedDirectories(members_of(self.authorities, "network.authorities", transport), self.quorum)


class NetworkFile(Section, frozen=True, kw_only=True):
    """What a directory writes as `network.toml`: a network and nothing else."""

    network: JoinedNetworkSection


class BrokersSection(Section, frozen=True, kw_only=True):
    """How this daemon uses a network of brokers."""

    edge: KeyText | None = None
    """The public key of the one edge broker to attach to, such as an organisation's own; a random one of the
    tree unless given."""
    community: KeyText | None = None
    """The community to be in, by its keeper's key, where the network has `privacy = "community"`."""

    def edge_key(self) -> PublicKey | None:
        """Return the key."""
        return bytes.fromhex(self.edge) if self.edge is not None else None

    def community_key(self) -> PublicKey | None:
        """Return the keeper's key."""
        return bytes.fromhex(self.community) if self.community is not None else None


class ReadySection(Section, frozen=True, kw_only=True):
    """The connections that are held ready for what will be published."""

    connections: Annotated[int, msgspec.Meta(ge=0, le=MAX_READY_CONNECTIONS)] = 0
    """In the mean, and as many for the probes of each subscription; 0: none."""
    minutes: Annotated[int, msgspec.Meta(ge=1, le=MAX_READY_MINUTES)] = 120
    """How long one is held in the mean; each is for 0.4 to 1.6 of it, drawn."""

    def rule(self) -> ReadyRule:
        """Return what the overlay goes by."""
        return ReadyRule(self.connections, self.minutes * 60.0)


class DaemonCoverSection(Section, frozen=True, kw_only=True):
    """Cover: rounds that hide from those who watch the lines who publishes, and who reads (docs/cover.md)."""

    on: bool = False
    """Whether all that this daemon says goes in letters."""
    read: bool = False
    """Whether it may subscribe then: relays that lose letters find in time who reads."""
    hold: Literal["auto", "always", "never"] = "auto"
    """Whether messages are held for up to a day: `auto`, unless the daemon was there for two weeks on end."""

    def rule(self) -> HoldRule | None:
        """Return how messages are held; `None`: there is no cover."""
        return HoldRule(self.hold) if self.on else None


class PresenceSection(Section, frozen=True, kw_only=True):
    """What shows others when this daemon is there."""

    trees: Literal["auto", "always"] = "auto"
    """Whether relays are told of its subscriptions' trees: `auto`, unless it runs a relay and the network
    keeps what is published."""

    def rule(self) -> TreeRule:
        """Return what the overlay goes by."""
        return TreeRule(self.trees)


class NodeSettings(TestnetDaemonSettings, frozen=True, kw_only=True):
    """Settings of `hushcast run node`."""

    program_name: ClassVar[str] = "node"
    """What `program` says in its file."""
    way_out: ClassVar[Mapping[str, str]] = {
        "network": "`hushcast join network.toml` adds it, from the file that the network's operator gives out"
    }
    """What adds a key that is missing."""

    role: Literal["relay", "client"]
    """`relay` forwards for others and is listed; `client` only publishes and subscribes."""
    network: JoinedNetworkSection | CentralNetworkSection | BrokersNetworkSection
    socket: PathText | None = None
    """The control socket; `control.sock` in the state directory unless given."""
    depth: Annotated[int, msgspec.Meta(ge=1, le=MAX_DEPTH)] | None = None
    """Levels of the trees of this daemon's subscriptions; the profile's unless given."""
    origins: Annotated[int, msgspec.Meta(ge=1, le=8)] | None = None
    """Random relays that a publication is dropped at; the profile's unless given."""
    trees: Annotated[int, msgspec.Meta(ge=1, le=MAX_TREES)] | None = None
    """Trees of a subscription, each as much traffic as the first; the profile's unless given."""
    ready: ReadySection = ReadySection()
    cover: DaemonCoverSection = DaemonCoverSection()
    presence: PresenceSection = PresenceSection()
    inbox: InboxSection = InboxSection()
    coverage: CoverageSection = CoverageSection()
    brokers: BrokersSection = BrokersSection()

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return what a file holds with the carrier that networks had when there was one alone."""
        values = super().completed(values)
        network = values.get("network")
        if not isinstance(network, dict):
            return values
        return values | {"network": {"carrier": OverlayParts.NAME} | network}

    @property
    def is_reached(self) -> bool:
        """Whether others connect to it: to relays alone."""
        return self.role == "relay"

    @property
    def has_communities(self) -> bool:
        """Whether the network is one of communities."""
        return isinstance(self.network, BrokersNetworkSection) and self.network.privacy == "community"

    @property
    def carrier(self) -> str:
        """Which carrier the network has."""
        if isinstance(self.network, BrokersNetworkSection):
            return BrokersParts.NAME
        return CentralParts.NAME if isinstance(self.network, CentralNetworkSection) else OverlayParts.NAME

    def profile(self) -> Profile:
        """Return an overlay's profile with this daemon's own depth, origins and trees."""
        assert isinstance(self.network, JoinedNetworkSection)
        base = PROFILES[self.network.profile]
        return dataclasses.replace(
            base,
            depth=base.depth if self.depth is None else self.depth,
            origins=base.origins if self.origins is None else self.origins,
            trees=base.trees if self.trees is None else self.trees,
        )

    def check_own(self) -> None:
        """Raise `UsageError` where nobody of the network is in reach, or settings are another carrier's."""
        if isinstance(self.network, JoinedNetworkSection):
            self.directories()
        else:
            self._check_client(self.network)
        if self.cover.on:
            self._check_cover()
        elif self.cover.read:
            raise UsageError("cover.read: without cover.on = true it says nothing: take it out")
        if self.brokers.edge is not None and not isinstance(self.network, BrokersNetworkSection):
            raise UsageError("brokers.edge: it is for networks of brokers, and this is another: take it out")
        if self.brokers.community is not None and not self.has_communities:
            raise UsageError('brokers.community: it is for privacy = "community", so not here: take it out')
        check_path("socket", self.socket_path())

    def _check_cover(self) -> None:
        """Raise `UsageError` where this daemon says what no letter could hide; its network shows later."""
        if not isinstance(self.network, JoinedNetworkSection):
            raise UsageError("cover.on: cover is of the overlay, and this is another: take it out")
        if self.role == "relay":
            raise UsageError(
                'cover.on: everybody sees when a relay is there, and whom it talks to: write role = "client"'
            )
        if PROFILES[self.network.profile].root is Root.LISTED:
            raise UsageError("cover.on: there is none under the profile paper: take it out")
        if self.ready.connections:
            raise UsageError("ready.connections: under cover nothing is dropped over them: take it out")

    def _check_client(self, network: CentralNetworkSection | BrokersNetworkSection) -> None:
        """Check what is of a network whose servers are programs of their own."""
        network.check(self.transport)
        if isinstance(network, BrokersNetworkSection):
            network.check_privacy(self.is_watched)
        is_central = isinstance(network, CentralNetworkSection)
        if self.role == "relay":
            kind = "a central network" if is_central else "a network of brokers"
            servers = "proxies" if is_central else "brokers"
            made = "publications-proxy" if is_central else "broker"
            raise UsageError(
                f'role: {kind} has no relays: write role = "client"; its {servers} are programs of their own'
                f" (`hushcast init {made}`)"
            )
        if self.ready.connections:
            raise UsageError("ready.connections: they are of the overlay, and this is another: take it out")
        if self.presence.rule() is not TreeRule.AUTO:
            raise UsageError("presence.trees: they are of the overlay, and this is another: take it out")
        for key in ("depth", "origins", "trees"):
            if getattr(self, key) is not None:
                this = "is central" if is_central else "is one of brokers"
                raise UsageError(f"{key}: it belongs to the overlay, and this network {this}: take it out")

    def directories(self) -> PinnedDirectories:
        """Return an overlay's directories, if the transport may reach them; raise `UsageError`."""
        assert isinstance(self.network, JoinedNetworkSection)
        return self.network.pinned(self.transport)

    def socket_path(self) -> Path:
        """Return where the control socket is."""
        return Path(self.socket) if self.socket else Path(self.state) / "control.sock"
