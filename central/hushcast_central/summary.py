"""What a configuration says, in a few lines for the one who wrote it."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_central.network_file import CentralNetworkSection
from hushcast_central.settings import ProxySettings, ServedNetworkSection, ServerSettings
from hushcast_protocol.central.network import PROXY_ROLES, Proxy, missing_roles
from hushcast_runtime.wording import counted

_KEY_SHOWN = 16  # digits: enough to compare


def server_summary(settings: ServerSettings) -> dict[str, list[str]]:
    """Return what a server's configuration says, by name."""
    return {
        "state": [settings.state],
        "network": [_network(settings.network)],
        "proxies": _proxies(settings.proxies()),
        "keeping": [settings.kept().text],
    }


def proxy_summary(settings: ProxySettings) -> dict[str, list[str]]:
    """Return what a proxy's configuration says, by name."""
    return {
        "state": [settings.state],
        "role": [settings.role],
        "network": [_network(settings.network)],
        "server": [f"{settings.network.server_key[:_KEY_SHOWN]}… at {settings.network.server}"],
    }


def _network(section: ServedNetworkSection | CentralNetworkSection) -> str:
    return f"{section.name}, {section.profile}, epochs of {counted(section.epoch_seconds, 'second')}"


def _proxies(proxies: Sequence[Proxy]) -> list[str]:
    found = [
        f"{proxy.role}: {proxy.key.hex()[:_KEY_SHOWN]}… at {proxy.address}"
        for role in PROXY_ROLES
        for proxy in proxies
        if proxy.role == role
    ]
    return found + [f"{role}: none yet" for role in missing_roles(proxy.role for proxy in proxies)]
