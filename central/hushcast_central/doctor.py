"""What the doctors of server and proxies look at beside what every daemon's does: each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.central.network import PROXY_ROLES, Proxy

_LINKS: Mapping[str, tuple[str, str]] = {
    "not listed": (
        "the server does not list this proxy yet",
        "give its operator this proxy's proxy.toml, for `hushcast central server admit proxy.toml`",
    ),
    "not reached": (
        "not reached",
        "ask its operator whether it runs; compare the configuration with the newest network.toml",
    ),
}


def examine_proxies(listed: Sequence[Proxy], connected: frozenset[bytes]) -> list[Finding]:
    """Look, as the server, whether there are proxies of each role, and whether they are connected."""
    found = []
    for role in PROXY_ROLES:
        ours = [proxy.key in connected for proxy in listed if proxy.role == role]
        told = f"{sum(ours)} of {len(ours)} connected"
        check = f"proxies for {role}"
        if not ours:
            advice = "`hushcast central server admit proxy.toml` lists one; another operator's is best"
            found.append(bad(check, "none listed", advice))
        elif not any(ours):
            found.append(bad(check, told, "ask their operators; `central proxy doctor` tells them why"))
        elif not all(ours):
            found.append(
                warning(check, told, "the others carry on; ask the operators of those that are away")
            )
        else:
            found.append(good(check, told))
    return found


def examine_server_link(state: str | None) -> Finding:
    """Look, as a proxy, whether the server is reached and lists this proxy; `None` before it was tried."""
    if state == "open":
        return good("server", "connected, and lists this proxy")
    if state is None:
        return bad("server", "not tried yet", "see above")
    return bad("server", *_LINKS[state])
