"""Settings of brokers: every one declared once; what could leak an address is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import msgspec

from hushcast_brokers.broker_sections import BrokerSection, check_brokers, seats_of
from hushcast_brokers.network_file import BrokersNetworkSection, BrokersTerms
from hushcast_brokers.tomography.section import TomographySection
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.versions.network_wire import check_wanted
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.broker_tree import MAX_BROKERS, BrokerPosition
from hushcast_protocol.brokers.community.charter import MAX_COMMUNITIES
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import MAX_K, AnonymityTerms
from hushcast_runtime.files import read_most
from hushcast_runtime.processes.config import MAX_LARGE_CONFIG, KeyText, Section, parse_settings
from hushcast_runtime.processes.doctors_socket import ExaminedSettings
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection
from hushcast_runtime.toml import keys_if_any

_OF_EDGES = "it is an edge broker's, which has the clients"
_NO_CONDITIONS = 'with privacy = "full" no broker reads conditions'


_NO_MEMBER = 'with privacy = "community" the service would read what only members may'


class MadeNetworkSection(BrokersTerms, frozen=True, kw_only=True):
    """The network that a root makes; its key is drawn at the first start."""

    carrier: Literal["brokers"]
    """`brokers`: so nobody takes this for a directory's configuration."""


class RootSettings(ExaminedSettings, frozen=True, kw_only=True):
    """Settings of the root, which lists all other brokers."""

    program_name: ClassVar[str] = "broker"
    """What `program` says in its file."""
    live: ClassVar[frozenset[str]] = frozenset({"log", "listed", "communities", "wire"})
    """The keys that a running root applies."""
    most_bytes: ClassVar[int] = MAX_LARGE_CONFIG
    """Of a file."""
    elsewhere: ClassVar[Mapping[str, str]] = {
        "anonymity": _OF_EDGES,
        "edge": _OF_EDGES,
        "parent": "the root has none",
    }
    """Keys of other brokers, and why the root has none of them."""

    role: Literal["root"]
    """`root`: it signs the tree of brokers, and takes what is published."""
    network: MadeNetworkSection
    listed: Annotated[tuple[BrokerSection, ...], msgspec.Meta(max_length=MAX_BROKERS - 1)] = msgspec.field(
        name="brokers", default=()
    )
    """All other brokers of the tree; `hushcast admin broker admit` adds one."""
    communities: Annotated[tuple[KeyText, ...], msgspec.Meta(max_length=MAX_COMMUNITIES)] = ()
    """With `privacy = "community"`: the communities that there are, by their keepers' keys."""
    tomography: TomographySection | None = None
    wire: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """What the network should speak, which the root announces a day ahead; otherwise what it does."""
    keeping: KeepingSection | None = None
    """What the root keeps for those who come later; nothing in communities and under `paper`."""

    def kept(self) -> KeepingSection:
        """Return what the root keeps."""
        return self.keeping or (KeepingSection() if self.network.settled().can_keep else NOTHING)

    def keepers(self) -> frozenset[PublicKey]:
        """Return the keys of the communities' keepers."""
        return frozenset(map(bytes.fromhex, self.communities))

    def seats(self, root: PublicKey) -> tuple[BrokerPosition, ...]:
        """Return the seats of all other brokers."""
        return seats_of(self.listed, root)

    def check_own(self) -> None:
        """Raise `UsageError` where brokers are out of reach, or are no tree."""
        super().check_own()
        check_wanted(self.wire)
        self.network.check_privacy(self.is_watched)
        check_brokers(self.listed, self.transport)
        if self.kept().days and not self.network.settled().can_keep:
            raise UsageError(
                "keeping.days: in communities, and as published, nothing is kept: write 0, or take it out"
            )
        if self.communities and self.network.privacy != "community":
            raise UsageError('communities: they are for privacy = "community": take them out')
        _check_service(self.tomography, self.transport, self.network)


class AnonymitySection(Section, frozen=True, kw_only=True):
    """What an edge broker asks of every filter before it shows it, whatever its client asks."""

    k: Annotated[int, msgspec.Meta(ge=1, le=MAX_K)]
    """Subscribers that are to stand behind a filter."""
    condition: AnonymityCondition = AnonymityCondition.SOURCE
    """Who counts as standing behind it."""
    otherwise: Literal["refuse", "wait", "generalise"] = "generalise"
    """What becomes of a filter with fewer, where its client asks for nothing."""


class EdgeSection(Section, frozen=True, kw_only=True):
    """Whom an edge broker serves."""

    open: bool = True
    """Whether anybody may attach."""
    clients: tuple[KeyText, ...] = ()
    """With `open = false`: the public keys of those who may."""


class BrokerSettings(ExaminedSettings, frozen=True, kw_only=True):
    """Settings of an inner or an edge broker."""

    program_name: ClassVar[str] = "broker"
    """What `program` says in its file."""
    way_out: ClassVar[Mapping[str, str]] = {
        "network": "`hushcast join network.toml --config` and this file adds it, from what the root wrote",
        "role": "write root, inner or edge",
    }
    """What adds a key that is missing."""
    live: ClassVar[frozenset[str]] = frozenset({"log", "edge"})
    elsewhere: ClassVar[Mapping[str, str]] = {
        "brokers": "the root alone lists brokers: `hushcast admin broker admit` on its machine",
        "wire": "the root alone says what its network speaks",
        "communities": "the root alone lists them; charters say which of them this broker is in",
    }
    """Keys of the root, and why other brokers have none of them."""

    role: Literal["inner", "edge"]
    """`inner` has brokers below it, `edge` has clients: what this broker asks the root's operator for."""
    network: BrokersNetworkSection
    parent: KeyText | None = None
    """The key of the broker that it asks to stand below; the root unless given."""
    anonymity: AnonymitySection | None = None
    edge: EdgeSection | None = None
    tomography: TomographySection | None = None

    def minimum(self) -> AnonymityTerms:
        """Return what is asked of every filter."""
        asked = self.anonymity
        if asked is None:
            return OPEN
        return AnonymityTerms(asked.k, asked.condition, asked.otherwise)

    def clients(self) -> frozenset[PublicKey] | None:
        """Return who may attach, `None` for anybody."""
        if self.edge is None or self.edge.open:
            return None
        return frozenset(bytes.fromhex(key) for key in self.edge.clients)

    def wish(self) -> str | None:
        """Return the parent to ask for, `None` for the root."""
        return None if self.parent == self.network.root_key else self.parent

    def check_own(self) -> None:
        """Raise `UsageError` where the root is out of reach, or settings are another broker's."""
        super().check_own()
        self.network.check(self.transport)
        self.network.check_privacy(self.is_watched)
        _check_service(self.tomography, self.transport, self.network)
        if self.anonymity is not None and self.network.privacy == "full":
            raise UsageError(f"anonymity: {_NO_CONDITIONS}: take it out")
        for key in ("anonymity", "edge"):
            if self.role != "edge" and getattr(self, key) is not None:
                raise UsageError(f'{key}: {_OF_EDGES}: write role = "edge", or take it out')
        if self.edge is not None and self.edge.open and self.edge.clients:
            raise UsageError("edge.clients: with open = true anybody is served: write open = false")


AnyBrokerSettings = RootSettings | BrokerSettings


def load_broker(path: Path) -> AnyBrokerSettings:
    """Read the configuration of a broker, the root's or another's; raises as `load_settings`."""
    return parse_broker(read_most(path, MAX_LARGE_CONFIG), str(path))


def parse_broker(data: bytes, where: str) -> AnyBrokerSettings:
    """Return what a broker's configuration says; raises as `parse_settings`."""
    if keys_if_any(data).get("role") == "root":
        return parse_settings(data, where, RootSettings)
    return parse_settings(data, where, BrokerSettings)


def _check_service(section: TomographySection | None, transport: str, network: BrokersTerms) -> None:
    if section is None:
        return
    section.check(transport)
    if network.privacy == "full":
        raise UsageError(f"tomography: {_NO_CONDITIONS}: take it out")
    if network.privacy == "community":
        raise UsageError(f"tomography: {_NO_MEMBER}: take it out")
