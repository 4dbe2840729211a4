"""The doctors of server and proxies: one inside a daemon that runs, and one that looks from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hushcast_central.asked import ask_findings
from hushcast_central.settings import CentralDaemonSettings
from hushcast_central.upgrade import VERSION
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_protocol.central.network import PROXY_ROLES, Proxy
from hushcast_runtime.environment import Environment
from hushcast_runtime.examining import (
    examine_clock,
    examine_core_dumps,
    examine_descriptor,
    examine_disk,
    examine_files,
    examine_reach,
    examine_tor,
)
from hushcast_runtime.files import acting_as_owner
from hushcast_runtime.layout import WAY_OUT_OF_NEWER, kept_version
from hushcast_runtime.process import holder
from hushcast_runtime.state_directory import check_access
from hushcast_runtime.store import StoreError
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener, Transport

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


class Doctor:
    """Examines the daemon that it lives in, before and after that has come up."""

    def __init__(self, settings: CentralDaemonSettings, env: Environment, command: str, files: int) -> None:
        """`command` runs such a daemon, which may need so many open `files`."""
        self._settings = settings
        self.env = env
        self._command = command
        self._files = files
        self.tor: TorTransport | None = None
        self.transport: Transport | None = None
        self.listener: Listener | None = None

    async def examine(self, own: Sequence[Finding]) -> list[Finding]:
        """Return a finding for each thing looked at, `own` among them; takes a minute at most."""
        settings, found = self._settings, []
        if settings.transport == "tor":
            found += [await examine_tor(self.tor), await examine_clock(self.tor, self.env)]
        found += [examine_disk(settings.state_path()), examine_files(self._files)]
        if settings.testnet is None:
            found.append(examine_core_dumps(self._command))
        found.append(await examine_descriptor(self.listener))
        found.append(await examine_reach(self.listener, self.transport, self.env))
        return [*found, *own]


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


async def examine_from_outside(settings: CentralDaemonSettings, command: str) -> list[Finding]:
    """Look at a daemon's state, and ask it what its own doctor finds, if it runs.

    `command` is what runs it. Takes two minutes at most.
    """
    state = settings.state_path()
    try:
        check_access(state)
    except UsageError as error:
        return [bad("state", "belongs to another user", str(error))]
    with acting_as_owner(state):
        looked, pid = _look_at(state)
    if looked.verdict == "bad" or pid is None:
        there = [examine_disk(state)] if state.is_dir() else []
        return [looked, *there, bad("daemon", "does not run", f"start it: its unit, or `{command}`")]
    inside = await ask_findings(settings.doctors_socket())
    if inside is None:
        return [
            looked,
            bad("daemon", f"runs (pid {pid}) and does not answer", "look at its log, or restart it"),
        ]
    return [looked, good("daemon", f"runs (pid {pid})"), *inside]


def _look_at(state: Path) -> tuple[Finding, int | None]:
    if not state.exists():
        return good("state", f"{state} is made at the first start"), None
    if state.stat().st_mode & 0o077:
        return bad("state", f"{state} is open to other users", f"chmod 700 {state}"), None
    try:
        version = kept_version(state)
    except StoreError as error:
        return bad("state", "the database cannot be read", f"look at the disk: {error}"), None
    if version > VERSION:
        return bad("state", f"version {version}, this program knows up to {VERSION}", WAY_OUT_OF_NEWER), None
    return good("state", f"{state}, version {version}"), holder(state)
