"""The doctor: looks at what a daemon needs to work, and says of each thing what it found and what to do."""

from __future__ import annotations

from pathlib import Path

from hushcast.words import Finding
from hushcast_node.daemon import Daemon
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.findings import bad, good, warning
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
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.wording import counted

FILES_NEEDED = 768  # open files beside the links: applications, mailboxes, drops
FILES_A_RELAY = 3  # a link in each direction, and one that replaces another


class Doctor:
    """Examines the daemon that it lives in, before and after that has come up."""

    def __init__(self, settings: NodeSettings, env: Environment) -> None:
        self._settings = settings
        self._env = env
        self.tor: TorTransport | None = None
        self.daemon: Daemon | None = None

    async def examine(self) -> list[Finding]:
        """Return a finding for each thing looked at; takes a minute at most, a few seconds mostly."""
        found = []
        if self._settings.transport == "tor":
            found += [await examine_tor(self.tor), await examine_clock(self.tor, self._env)]
        found += [self._roster(), examine_disk(Path(self._settings.state)), self._files()]
        if self._settings.testnet is None:
            found.append(examine_core_dumps("hushcast node run"))
        if self._settings.role != "relay":
            return [*found, self._subscriptions()]
        listener = self.daemon.listener if self.daemon is not None else None
        transport = self.daemon.transport if self.daemon is not None else None
        found.append(await examine_descriptor(listener))
        return [*found, await examine_reach(listener, transport, self._env)]

    def _roster(self) -> Finding:
        newest = self.daemon.rosters.newest if self.daemon is not None else None
        if self.daemon is None or newest is None:
            return bad(
                "roster",
                "none",
                "wait for tor and the directory; then compare the configuration with network.toml",
            )
        age = self.daemon.rosters.calendar.epoch(self._env.now()) - newest.epoch
        if age > 0:
            return bad(
                "roster",
                f"{counted(age, 'epoch')} old, {counted(len(newest.relays), 'relay')}",
                "the directory is away or not reached: the daemon works on; ask its operator",
            )
        if self.daemon.rosters.held:
            return bad(
                "roster",
                f"lists {counted(len(newest.relays), 'relay')}, too few of those before: not acted on",
                "ask other operators whether so many relays are gone; else the directory lies, or is cut off",
            )
        if self.daemon.relay_id is not None and self.daemon.relay_id not in newest.relays:
            return warning("roster", "fresh, this relay not in it yet", "wait an epoch; the clock may be off")
        return good("roster", f"fresh, {counted(len(newest.relays), 'relay')}")

    def _subscriptions(self) -> Finding:
        held = self.daemon.service.subscriptions() if self.daemon is not None and self.daemon.serves else []
        ready = sum(subscription["ready"] for subscription in held)
        if ready < len(held):
            return warning(
                "subscriptions",
                f"{ready} of {len(held)} ready",
                "wait; relays are still being told",
            )
        return good("subscriptions", f"{ready} of {len(held)} ready")

    def _files(self) -> Finding:
        newest = self.daemon.rosters.newest if self.daemon is not None else None
        relays = len(newest.relays) if newest is not None and self._settings.role == "relay" else 0
        return examine_files(FILES_NEEDED + FILES_A_RELAY * relays)
