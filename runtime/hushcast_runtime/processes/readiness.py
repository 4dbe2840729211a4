"""Readiness: what a daemon says of itself to who looks after it.

A service manager is notified of progress, with heartbeats for its watchdog; others ask whether it is ready.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import trio

LOOK_EVERY = 1.0  # seconds between heartbeats, if the watchdog does not need them more often
_PATIENCE = 30_000_000  # microseconds by which each heartbeat of a starting daemon extends its start timeout


@dataclass(frozen=True, slots=True)
class Health:
    """How far a daemon is."""

    has_started: bool
    """Whether it has done what a service manager waits for; what fails later does not undo it."""
    doing: str
    """One line for the operator; it names no topic, address or key."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a daemon does now what it is there for."""

    ready: bool
    """As the metric `ready` has it."""
    doing: str
    """As that of `Health`."""


class ServiceManager:
    """The service's end of systemd's notification protocol (sd_notify(3))."""

    def __init__(self, address: str, watchdog: float | None) -> None:
        """Speak to the socket at `address`; `watchdog` seconds of silence end a daemon that has started."""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self.beat = LOOK_EVERY if watchdog is None else min(LOOK_EVERY, watchdog / 4)
        self._started, self._shown = False, ""  # as it has been told

    @classmethod
    def of_process(cls, environment: Mapping[str, str], pid: int) -> ServiceManager | None:
        """Return the manager that started the process `pid`, `None` where none wants to hear of it."""
        address = environment.get("NOTIFY_SOCKET", "")
        if address[:1] not in ("/", "@"):
            return None
        microseconds = environment.get("WATCHDOG_USEC", "")
        meant = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        watchdog = int(microseconds) / 1e6 if meant and microseconds.isdecimal() else None
        return cls(address, watchdog or None)

    def tell(self, *lines: str) -> bool:
        """Send one notification; return whether it was taken. A missing manager is not an error."""
        with suppress(OSError):
            self._socket.sendto("\n".join(lines).encode(), self._address)
            return True
        return False

    async def keep_informed(
        self, health: Callable[[], Health], about_to_be_ready: Callable[[], None] = lambda: None
    ) -> None:
        """Send a daemon's health and heartbeats until cancelled; if the scheduler hangs, they stop.

        `READY=1` is sent once, when it is true. Until then each heartbeat extends the start timeout: a slow
        Tor may take as long as it needs, but a daemon that hangs is ended. One that stood by has told it when
        it begins.
        """
        while True:
            now = health()
            has_started = self._started or now.has_started
            lines = ["WATCHDOG=1"] if has_started else [f"EXTEND_TIMEOUT_USEC={_PATIENCE}"]
            if has_started and not self._started:
                about_to_be_ready()
                lines.append("READY=1")
            if now.doing != self._shown:
                lines.append(f"STATUS={now.doing}")
            if self.tell(*lines):
                self._started, self._shown = has_started, now.doing
            await trio.sleep(self.beat)

    def close(self) -> None:
        """Say that the daemon is ending, and close the socket."""
        self.tell("STOPPING=1", "STATUS=stopping")
        self._socket.close()


def service_manager() -> ServiceManager | None:
    """Return who started this process if it wants to be told, and hide it from the processes we start."""
    manager = ServiceManager.of_process(os.environ, os.getpid())
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        os.environ.pop(name, None)
    return manager
