"""Settings of the server and of proxies: every one declared once; what could leak an address is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import msgspec

from hushcast_central.network_file import (
    CentralNetworkSection,
    CentralTerms,
    ProxySection,
    check_proxies,
    listed_proxies,
)
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.versions.network_wire import check_wanted
from hushcast_protocol.central.network import MAX_PROXIES, CentralNetwork, Proxy, ProxyRole
from hushcast_runtime.processes.doctors_socket import ExaminedSettings
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection


class ServedNetworkSection(CentralTerms, frozen=True, kw_only=True):
    """The network that a server makes; its keys are drawn at the first start."""

    carrier: Literal["central"]
    """`central`: so nobody takes this for a directory's configuration."""

    def network(self, server: bytes, sealing: bytes) -> CentralNetwork:
        """Return what the protocol calls the network, which the server's two public keys belong to."""
        return CentralNetwork(self.name, self.profile, self.epoch_seconds, server, sealing)


class ServerSettings(ExaminedSettings, frozen=True, kw_only=True):
    """Settings of `hushcast run central-server`."""

    program_name: ClassVar[str] = "central-server"
    """What `program` says in its file."""
    live: ClassVar[frozenset[str]] = frozenset({"log", "listed", "wire"})
    """The keys that a running server applies."""

    network: ServedNetworkSection
    listed: Annotated[tuple[ProxySection, ...], msgspec.Meta(max_length=MAX_PROXIES)] = msgspec.field(
        name="proxies", default=()
    )
    """The proxies that it serves, no others; `hushcast admin central admit` adds one."""

    wire: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """What the network should speak, which the server announces a day ahead; otherwise what it does."""

    keeping: KeepingSection | None = None
    """What the server keeps for those who come later; unless given, under `paper`, nothing."""

    def kept(self) -> KeepingSection:
        """Return what the server keeps."""
        is_published = not self.network.central_profile().wraps_anew
        return self.keeping or (NOTHING if is_published else KeepingSection())

    def proxies(self) -> tuple[Proxy, ...]:
        """Return the proxies."""
        return tuple(listed_proxies(self.listed))

    def check_own(self) -> None:
        """Raise `UsageError` where a proxy is out of reach, or two are one."""
        super().check_own()
        check_wanted(self.wire)
        check_proxies(self.listed, self.transport, "proxies")
        if self.kept().days and not self.network.central_profile().wraps_anew:
            raise UsageError("keeping.days: a server as published keeps nothing: write 0, or take it out")


class ProxySettings(ExaminedSettings, frozen=True, kw_only=True):
    """Settings of `hushcast run central-proxy`."""

    program_name: ClassVar[str] = "central-proxy"
    """What `program` says in its file."""
    elsewhere: ClassVar[Mapping[str, str]] = {"wire": "the server alone says what its network speaks"}
    """A key of the server, and why a proxy does not have it."""
    way_out: ClassVar[Mapping[str, str]] = {
        "network": "`hushcast join network.toml --config` and this file adds it, from what the server wrote"
    }
    """What adds a key that is missing."""

    role: ProxyRole
    """`publications` takes what is published to the server, `deliveries` brings subscribers what it sends."""
    network: CentralNetworkSection

    def check_own(self) -> None:
        """Raise `UsageError` where the server is out of reach."""
        super().check_own()
        self.network.check_server(self.transport)
