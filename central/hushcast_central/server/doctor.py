"""What the doctor of a server looks at beside what every daemon's does: its proxies."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.central.network import PROXY_ROLES, Proxy


def examine_proxies(listed: Sequence[Proxy], connected: frozenset[bytes]) -> list[Finding]:
    """Look, as the server, whether there are proxies of each role, and whether they are connected."""
    found = []
    for role in PROXY_ROLES:
        ours = [proxy.key in connected for proxy in listed if proxy.role == role]
        told = f"{sum(ours)} of {len(ours)} connected"
        check = f"proxies for {role}"
        if not ours:
            advice = "`hushcast admin central admit proxy.toml` lists one; another operator's is best"
            found.append(bad(check, "none listed", advice))
        elif not any(ours):
            found.append(bad(check, told, "ask their operators; `doctor central-proxy` tells them why"))
        elif not all(ours):
            found.append(
                warning(check, told, "the others carry on; ask the operators of those that are away")
            )
        else:
            found.append(good(check, told))
    return found
