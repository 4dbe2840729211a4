"""The section `[network]` of a central network: what its server gives out, and what nodes take in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from nacl.bindings import crypto_box_seal
from nacl.exceptions import CryptoError

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.central.network import MAX_PROXIES, CentralNetwork, Proxy, ProxyRole, missing_roles
from hushcast_protocol.central.profile import CENTRAL_PROFILES, CentralProfile
from hushcast_runtime.processes.config import KeyText, NetworkTerms, Section, reachable
from hushcast_runtime.processes.network_file import toml_text


class ProxySection(Section, frozen=True, kw_only=True):
    """A proxy, as its operator gives it out."""

    role: ProxyRole
    """`publications` takes what is published; `deliveries` brings subscribers what they asked for."""
    key: KeyText
    """The proxy's public key, 64 hexadecimal digits."""
    address: str
    """The proxy's address, `….onion:7411`."""


class CentralTerms(NetworkTerms, frozen=True, kw_only=True):
    """What all daemons of a central network agree on, its server among them."""

    def central_profile(self) -> CentralProfile:
        """Return what the network's daemons do."""
        return CENTRAL_PROFILES[self.profile]


class CentralNetworkSection(CentralTerms, frozen=True, kw_only=True, tag_field="carrier", tag="central"):
    """A network with one server, which its operator gives out; all its daemons agree on it."""

    server: str
    """The server's address, which proxies reach it by, `….onion:7411`."""
    server_key: KeyText
    """The server's public key, 64 hexadecimal digits."""
    sealing_key: KeyText
    """The server's key that introductions are sealed to, 64 hexadecimal digits."""
    listed: Annotated[tuple[ProxySection, ...], msgspec.Meta(max_length=MAX_PROXIES)] = msgspec.field(
        default=(), name="proxies"
    )
    """The proxies: at least one of each role, for those who publish and subscribe."""

    def network(self) -> CentralNetwork:
        """Return what the protocol calls the network."""
        server, sealing = bytes.fromhex(self.server_key), bytes.fromhex(self.sealing_key)
        return CentralNetwork(self.name, self.profile, self.epoch_seconds, server, sealing)

    def proxies(self) -> list[Proxy]:
        """Return the proxies; their addresses are checked by `check`."""
        return listed_proxies(self.listed)

    def check(self, transport: str) -> None:
        """Raise `UsageError` if nobody could publish and subscribe by this over the transport."""
        self.check_server(transport)
        check_proxies(self.listed, transport, "network.proxies")
        if missing := missing_roles(proxy.role for proxy in self.listed):
            raise UsageError(
                f"network.proxies: none is for {missing[0]}; ask the server's operator for the newest file"
            )
        if any(proxy.key == self.server_key for proxy in self.listed):
            raise UsageError("network.proxies: one has the server's key; a proxy has a key of its own")

    def check_server(self, transport: str) -> None:
        """Raise `UsageError` if a proxy could not reach this server, or introductions not be sealed to it."""
        reachable("network.server", self.server, transport)
        try:
            crypto_box_seal(b"", bytes.fromhex(self.sealing_key))
        except CryptoError:
            raise UsageError("network.sealing_key: nothing can be sealed to this key") from None


class CentralNetworkFile(Section, frozen=True, kw_only=True):
    """What a server writes as `network.toml`: a network and nothing else."""

    network: CentralNetworkSection


def listed_proxies(sections: Iterable[ProxySection]) -> list[Proxy]:
    """Return proxies whose sections were checked."""
    return [Proxy(bytes.fromhex(one.key), Address(one.address), one.role) for one in sections]


def check_proxies(sections: Sequence[ProxySection], transport: str, key: str) -> None:
    """Raise `UsageError` if the transport may not reach one of the proxies, or two are one."""
    for number, proxy in enumerate(sections, 1):
        reachable(f"{key} #{number}.address", proxy.address, transport)
    if len({proxy.key for proxy in sections}) < len(sections):
        raise UsageError(f"{key}: two have the same key; each proxy has one of its own, also of another role")
    if len({proxy.address for proxy in sections}) < len(sections):
        raise UsageError(f"{key}: two have the same address; each proxy has one of its own")


def proxy_section(proxy: Proxy, table: str = "proxies") -> str:
    """Return the lines that list a proxy: as the server's operator is given them, or in `network.proxies`."""
    return (
        f"[[{table}]]\n"
        f'role = "{proxy.role}"\n'
        f'key = "{proxy.key.hex()}"\n'
        f"address = {toml_text(proxy.address)}\n"
    )


def without_proxies(section: Section) -> Section:
    """Return what a proxy keeps of a network: it knows no others, so that these may change."""
    return (
        msgspec.structs.replace(section, listed=()) if isinstance(section, CentralNetworkSection) else section
    )


def central_section(network: CentralNetwork, server: Address, proxies: Iterable[Proxy]) -> str:
    """Return the lines of `[network]` and its proxies; `server` is where proxies reach the server."""
    section = (
        "[network]\n"
        'carrier = "central"\n'
        f"name = {toml_text(network.name)}\n"
        f'profile = "{network.profile}"\n'
        f"epoch_seconds = {network.epoch_seconds}\n"
        f"server = {toml_text(server)}\n"
        f'server_key = "{network.server.hex()}"\n'
        f'sealing_key = "{network.sealing_key.hex()}"\n'
    )
    return "\n".join([section, *(proxy_section(proxy, "network.proxies") for proxy in proxies)])
