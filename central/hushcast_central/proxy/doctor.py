"""What the doctor of a proxy looks at beside what every daemon's does: its link to the server."""

from __future__ import annotations

from collections.abc import Mapping

from hushcast_protocol.base.findings import Finding, bad, good

_LINKS: Mapping[str, tuple[str, str]] = {
    "not listed": (
        "the server does not list this proxy yet",
        "give its operator this proxy's proxy.toml, for `hushcast admin central admit proxy.toml`",
    ),
    "not reached": (
        "not reached",
        "ask its operator whether it runs; compare the configuration with the newest network.toml",
    ),
}


def examine_server_link(state: str | None) -> Finding:
    """Look, as a proxy, whether the server is reached and lists this proxy; `None` before it was tried."""
    if state == "open":
        return good("server", "connected, and lists this proxy")
    if state is None:
        return bad("server", "not tried yet", "see above")
    return bad("server", *_LINKS[state])
