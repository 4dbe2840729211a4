"""The doctor: looks at what a daemon needs to work, and says of each thing what it found and what to do."""

from __future__ import annotations

import re
import resource
import shutil
from collections.abc import Awaitable, Callable

import trio

from hushcast.words import Finding
from hushcast_node.daemon import Daemon
from hushcast_node.settings import NodeSettings
from hushcast_runtime.core_dumps import core_dumps_are_forbidden
from hushcast_runtime.environment import Environment
from hushcast_runtime.tor.consensus import consensus_span
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.wording import counted

TOR_NEEDED = (0, 4, 8)
PUBLISHED_WITHIN = 15.0  # seconds; tor waits about 10 for its last directory
REACHED_WITHIN = 60.0  # seconds; a first contact takes 1 to 5, and Tor may be slow
LITTLE_ROOM, NO_ROOM = 2 << 30, 256 << 20  # bytes; a relay's spool and inbox may take most of the first
FILES_NEEDED = 768  # open files beside the links: applications, mailboxes, drops
FILES_A_RELAY = 3  # a link in each direction, and one that replaces another

_UNREACHED = (
    "Tor did not carry a connection back to this daemon: look at tor's log, try again in a few minutes"
)


class Doctor:
    """Examines the daemon that it lives in, before and after that has come up."""

    def __init__(self, settings: NodeSettings, env: Environment) -> None:
        self._settings = settings
        self._env = env
        self.tor: TorTransport | None = None
        self.daemon: Daemon | None = None

    async def examine(self) -> list[Finding]:
        """Return a finding for each thing looked at; takes a minute at most, a few seconds mostly."""
        checks: list[Callable[[], Awaitable[Finding]]] = [self._roster, self._disk, self._files]
        if self._settings.testnet is None:
            checks.append(self._memory)
        if self._settings.transport == "tor":
            checks = [self._tor, self._clock, *checks]
        if self._settings.role == "relay":
            checks += [self._descriptor, self._reachable]
        else:
            checks += [self._subscriptions]
        return [await check() for check in checks]

    async def _tor(self) -> Finding:
        if self.tor is None or not self.tor.state.connected:
            return _bad(
                "tor",
                "the control connection is not up",
                "start tor, and let the daemon's user read its control cookie (on Debian: group debian-tor)",
            )
        state = self.tor.state
        version = (await self._ask_tor("version")).partition(" ")[0]
        if _numbers(version) < TOR_NEEDED:
            return _bad("tor", f"version {version} is too old", "upgrade tor to 0.4.8 or newer")
        if state.percent < 100:
            return _bad(
                "tor",
                f"version {version}, {state.percent} % connected to the network: {state.summary}",
                state.problem
                or "wait; if it stays so, a wrong clock or a network that blocks Tor may be the reason",
            )
        return _good("tor", f"version {version}, connected to the network")

    async def _clock(self) -> Finding:
        now, span = self._env.now(), await consensus_span(self.tor) if self.tor is not None else None
        if span is None:
            return Finding("clock", "warning", "not compared: tor has no consensus yet", "see tor above")
        if span[0] <= now <= span[1]:
            return _good("clock", "agrees with Tor's consensus, which is good to hours")
        side = "behind" if now < span[0] else "ahead of"
        return _bad(
            "clock", f"{side} Tor's consensus", "set it, and run a time service (timedatectl set-ntp true)"
        )

    async def _ask_tor(self, key: str) -> str:
        try:
            return await self.tor.getinfo(key) if self.tor is not None else ""
        except TransportError:
            return ""

    async def _roster(self) -> Finding:
        newest = self.daemon.rosters.newest if self.daemon is not None else None
        if self.daemon is None or newest is None:
            return _bad(
                "roster",
                "none",
                "wait for tor and the directory; then compare the configuration with network.toml",
            )
        age = self.daemon.rosters.calendar.epoch(self._env.now()) - newest.epoch
        if age > 0:
            return _bad(
                "roster",
                f"{counted(age, 'epoch')} old, {counted(len(newest.relays), 'relay')}",
                "the directory is away or not reached: the daemon works on; ask its operator",
            )
        if self.daemon.rosters.held:
            return _bad(
                "roster",
                f"lists {counted(len(newest.relays), 'relay')}, too few of those before: not acted on",
                "ask other operators whether so many relays are gone; else the directory lies, or is cut off",
            )
        if self.daemon.relay_id is not None and self.daemon.relay_id not in newest.relays:
            return Finding(
                "roster", "warning", "fresh, this relay not in it yet", "wait an epoch; the clock may be off"
            )
        return _good("roster", f"fresh, {counted(len(newest.relays), 'relay')}")

    async def _descriptor(self) -> Finding:
        advice = "see tor above; tor tries again by itself"
        if self.daemon is None or self.daemon.listener is None:
            return _bad("descriptor", "no onion service yet", advice)
        try:
            with trio.fail_after(PUBLISHED_WITHIN):
                await self.daemon.listener.published()
        except (TransportError, trio.TooSlowError):
            return _bad("descriptor", "not published", advice)
        return _good("descriptor", "published")

    async def _reachable(self) -> Finding:
        if self.daemon is None or self.daemon.listener is None:
            return _bad("onion service", "not there yet", "see tor above")
        try:
            with trio.fail_after(REACHED_WITHIN):
                stream = await self.daemon.transport.connect(
                    self.daemon.listener.address, self._env.isolation()
                )
                await stream.aclose()
        except (TransportError, trio.TooSlowError):
            return _bad("onion service", "not reached from here", _UNREACHED)
        return _good("onion service", "reached from here")

    async def _subscriptions(self) -> Finding:
        held = self.daemon.service.subscriptions() if self.daemon is not None and self.daemon.serves else []
        ready = sum(subscription["ready"] for subscription in held)
        if ready < len(held):
            return Finding(
                "subscriptions",
                "warning",
                f"{ready} of {len(held)} ready",
                "wait; relays are still being told",
            )
        return _good("subscriptions", f"{ready} of {len(held)} ready")

    async def _disk(self) -> Finding:
        free = shutil.disk_usage(self._settings.state).free
        found = f"{free / (1 << 30):.1f} GiB free for the state"
        if free < NO_ROOM:
            return _bad("disk", found, "make room: a daemon that cannot write ends")
        if free < LITTLE_ROOM:
            return Finding("disk", "warning", found, "make room: messages on their way may need it")
        return _good("disk", found)

    async def _files(self) -> Finding:
        newest = self.daemon.rosters.newest if self.daemon is not None else None
        relays = len(newest.relays) if newest is not None and self._settings.role == "relay" else 0
        needed = FILES_NEEDED + FILES_A_RELAY * relays
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft < needed:
            return _bad(
                "open files", f"{soft} allowed, {needed} may be needed", "raise LimitNOFILE (ulimit -n)"
            )
        return _good("open files", f"{soft} allowed")

    async def _memory(self) -> Finding:
        if core_dumps_are_forbidden():
            return _good("core dumps", "forbidden")
        return _bad("core dumps", "allowed", "start it with `hushcast node run`, which forbids them")


def _good(what: str, found: str) -> Finding:
    return Finding(what, "good", found)


def _bad(what: str, found: str, advice: str) -> Finding:
    return Finding(what, "bad", found, advice)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
