"""Lists a proxy in a server's configuration: appended as text, so that comments and order stay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from hushcast_central.network_file import ProxySection, listed_proxies, proxy_section
from hushcast_central.settings import ServerSettings
from hushcast_cli.configuration.config_files import check_edited, write_edited
from hushcast_cli.configuration.operator_files import read_given
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.config import Section, load_settings, parse_settings, parse_toml
from hushcast_runtime.toml import read_toml


class ProxyFile(Section, frozen=True, kw_only=True):
    """What a proxy writes as `proxy.toml`: its own lines and nothing else."""

    proxies: Annotated[tuple[ProxySection, ...], msgspec.Meta(min_length=1, max_length=1)]


def read_proxy(file: Path) -> ProxySection:
    """Return what a proxy gave out; raise `UsageError` that names the key and the reason."""
    data, where = read_given(file)
    try:
        return parse_toml(data, where, ProxyFile).proxies[0]
    except UsageError as error:
        raise UsageError(f"{error} (it takes proxy.toml, as the proxy wrote it)") from None


def admit_proxy(config: Path, proxy: ProxySection) -> tuple[ServerSettings, bool]:
    """List a proxy in a server's configuration; return what that says then, and whether the proxy is new.

    Raises `UsageError`, and then changes nothing.
    """
    before = load_settings(config, ServerSettings)
    if proxy in before.listed:
        return before, False
    if any(proxy.key == other.key for other in before.listed):
        raise UsageError(
            f"{config} lists this proxy with another role or address: take those lines out first"
        )
    text = config.read_text("utf-8")
    fresh = f"{text.rstrip()}\n\n{proxy_section(listed_proxies([proxy])[0])}"
    check_edited(fresh, _expected(read_toml(text), proxy), str(config), "proxies")
    settings = parse_settings(fresh.encode(), str(config), ServerSettings)
    write_edited(config, fresh)
    return settings, True


def _expected(before: dict[str, Any], proxy: ProxySection) -> dict[str, Any]:
    return before | {"proxies": [*before.get("proxies", []), msgspec.to_builtins(proxy)]}
