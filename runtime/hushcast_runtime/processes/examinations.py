"""What every daemon's doctor looks at: its tor, the clock, the disk, core dumps, its own onion service."""

from __future__ import annotations

import re
import resource
import shutil
from pathlib import Path

import trio

from hushcast_protocol.base.findings import Finding, bad, good, warning
from hushcast_runtime.environment import Environment
from hushcast_runtime.processes.config import DaemonSettings
from hushcast_runtime.processes.core_dumps import core_dumps_are_forbidden
from hushcast_runtime.tor.consensus import consensus_span
from hushcast_runtime.tor.socks_transport import SocksTransport
from hushcast_runtime.tor.tor_watch import TorState
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Listener, Transport, TransportError

TOR_NEEDED = (0, 4, 8)
PUBLISHED_WITHIN = 15.0  # seconds; tor waits about 10 for its last directory
REACHED_WITHIN = 60.0  # seconds; a first contact takes 1 to 5, and Tor may be slow
LITTLE_ROOM, NO_ROOM = 2 << 30, 256 << 20  # bytes; a spool and an inbox may take most of the first

_UNREACHED = (
    "Tor did not carry a connection back to this daemon: look at tor's log, try again in a few minutes"
)


async def examine_ways(
    settings: DaemonSettings, tor: TorTransport | SocksTransport | None, env: Environment
) -> list[Finding]:
    """Look at what carries everything; over loopback there is nothing to look at."""
    if settings.transport != "tor":
        return []
    if isinstance(tor, SocksTransport):
        return [examine_socks(tor.state)]  # which says nothing of the time
    return [await examine_tor(tor), await examine_clock(tor, env)]


async def examine_tor(tor: TorTransport | None) -> Finding:
    """Look at the connection to tor, its version, and how far it is."""
    if tor is None or not tor.state.connected:
        return bad(
            "tor",
            "the control connection is not up",
            "start tor, and let the daemon's user read its control cookie (on Debian: group debian-tor)",
        )
    state = tor.state
    try:
        version = (await tor.getinfo("version")).partition(" ")[0]
    except TransportError:
        version = ""
    if _numbers(version) < TOR_NEEDED:
        return bad("tor", f"version {version} is too old", "upgrade tor to 0.4.8 or newer")
    if not state.has_begun:
        return bad(
            "tor",
            f"version {version}, {state.percent} % connected to the network: {state.summary}",
            state.problem
            or "wait; if it stays so, a wrong clock or a network that blocks Tor may be the reason",
        )
    if not state.circuits_apart:
        return warning(
            "tor",
            f"version {version}, connected, but does not close circuits for us: relays see them end together",
            "let the filter before tor's control port allow the event STREAM and the command CLOSECIRCUIT",
        )
    return good("tor", f"version {version}, connected to the network")


def examine_socks(state: TorState) -> Finding:
    """Look at what a SOCKS port alone has shown."""
    if state.problem:
        return bad("tor", "its SOCKS port does not isolate: nothing is sent", state.problem)
    if not state.connected:
        return bad("tor", f"no SOCKS port: {state.summary}", "start tor, or set tor.socks to where it is")
    if not state.circuits:
        return warning(
            "tor",
            state.summary,
            "wait; if it stays so, look at that tor: a SOCKS port alone does not say why",
        )
    return warning(
        "tor",
        "reached and isolating, by a SOCKS port alone: circuits end together, and relays see that",
        'give it a control port (tor.mode = "system"), or a tor of its own ("own")',
    )


async def examine_clock(tor: TorTransport | None, env: Environment) -> Finding:
    """Compare the machine's clock with Tor's consensus."""
    now, span = env.now(), await consensus_span(tor) if tor is not None else None
    if span is None:
        return warning("clock", "not compared: tor has no consensus yet", "see tor above")
    if span[0] <= now <= span[1]:
        return good("clock", "agrees with Tor's consensus, which is good to hours")
    side = "behind" if now < span[0] else "ahead of"
    return bad(
        "clock", f"{side} Tor's consensus", "set it, and run a time service (timedatectl set-ntp true)"
    )


async def examine_descriptor(listener: Listener | None) -> Finding:
    """Look whether Tor has published the daemon's onion service."""
    advice = "see tor above; tor tries again by itself"
    if listener is None:
        return bad("descriptor", "no onion service yet", advice)
    try:
        with trio.fail_after(PUBLISHED_WITHIN):
            await listener.published()
    except (TransportError, trio.TooSlowError):
        return bad("descriptor", "not published", advice)
    return good("descriptor", "published")


async def examine_reach(listener: Listener | None, transport: Transport | None, env: Environment) -> Finding:
    """Connect to the daemon's own onion service through Tor."""
    if listener is None or transport is None:
        return bad("onion service", "not there yet", "see tor above")
    try:
        with trio.fail_after(REACHED_WITHIN):
            stream = await transport.connect(listener.address, env.isolation())
            await stream.aclose()
    except (TransportError, trio.TooSlowError):
        return bad("onion service", "not reached from here", _UNREACHED)
    return good("onion service", "reached from here")


def examine_disk(state: Path) -> Finding:
    """Look at the room for the state."""
    free = shutil.disk_usage(state).free
    found = f"{free / (1 << 30):.1f} GiB free for the state"
    if free < NO_ROOM:
        return bad("disk", found, "make room: a daemon that cannot write ends")
    if free < LITTLE_ROOM:
        return warning("disk", found, "make room: messages on their way may need it")
    return good("disk", found)


def examine_files(needed: int) -> Finding:
    """Compare how many open files the kernel allows this process with how many it may need."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft < needed:
        return bad("open files", f"{soft} allowed, {needed} may be needed", "raise LimitNOFILE (ulimit -n)")
    return good("open files", f"{soft} allowed")


def examine_core_dumps(command: str) -> Finding:
    """Look whether the kernel would write this process's memory; `command` is what forbids it."""
    if core_dumps_are_forbidden():
        return good("core dumps", "forbidden")
    return bad("core dumps", "allowed", f"start it with `{command}`, which forbids them")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
