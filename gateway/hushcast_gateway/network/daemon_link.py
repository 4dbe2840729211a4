"""The daemon that a gateway goes through: connected to while it is there, waited for while it is not."""

from __future__ import annotations

from pathlib import Path

import trio

import hushcast
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.logs import log

AGAIN = 5.0  # seconds between looks for a daemon that was never there, or that speaks another version


class DaemonLink:
    """A connection of the library that outlives every absence of the daemon, from the gateway's start on."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._daemon: hushcast.Daemon | None = None
        self._changed = ChangeSignal()
        self._broken = trio.Event()

    @property
    def is_there(self) -> bool:
        """Whether a daemon has answered."""
        return self._daemon is not None

    async def get(self) -> hushcast.Daemon:
        """Return the daemon, waiting for it."""
        while self._daemon is None:
            await self._changed.wait()
        return self._daemon

    def give_up(self, daemon: hushcast.Daemon) -> None:
        """Connect anew: this connection will not come again."""
        if self._daemon is daemon:
            self._set(None)
            self._broken.set()

    async def run(self) -> None:
        """Keep the connection until cancelled."""
        is_told = False
        while True:
            try:
                async with hushcast.connect(self._socket, timeout=None) as daemon:
                    is_told = False
                    self._broken = trio.Event()
                    self._set(daemon)
                    log.info("the daemon answers")
                    await self._broken.wait()
            except hushcast.HushcastError as error:
                if not is_told:
                    log.warning("the daemon does not answer", error=type(error).__name__)
                    is_told = True
            await trio.sleep(AGAIN)

    def _set(self, daemon: hushcast.Daemon | None) -> None:
        self._daemon = daemon
        self._changed.tell()
