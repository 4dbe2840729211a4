"""Circuits of ours: each is closed by itself, a while after what it was for has ended.

tor leaves them, and closes all that were used long enough ago together, at one moment each half a minute.
Relays at the other ends would see circuits of unlike messages end together, and know them for one daemon's.
Besides, a busy daemon's tor would spend its time on circuits that nobody uses any more.
"""

from __future__ import annotations

import re
from contextlib import suppress

import trio

from hushcast_protocol.base.crypto.secrets import Randomness, uniform
from hushcast_runtime.logs import log
from hushcast_runtime.tor.control import ControlClient
from hushcast_runtime.tor.replies import status
from hushcast_runtime.transports.base import TransportError

EVENTS = ("STREAM",)
"""What the control connection has to ask for, so that a `Circuits` hears of all this."""

MAX_ENDED = 4096  # circuits that wait to be closed, a task each; tor closes those beyond, later
LINGER = 1.0, 5.0  # seconds: what was sent last is on its way, and no two circuits end by one clock
_STREAM = b"650 STREAM "
_CLOSED, _GONE = "250", "552"


class Circuits:
    """Closes the circuits of one SOCKS user of a tor."""

    def __init__(self, user: str, randomness: Randomness) -> None:
        """Take streams of `user`, whose name is of the URL-safe base64 alphabet, for ours."""
        self._ended = re.compile(
            rb"%b\d+ (?:CLOSED|FAILED) ([1-9]\d{0,9}) .* SOCKS_USERNAME=\"%b\"" % (_STREAM, user.encode())
        )
        self._randomness = randomness
        self._waiting = 0
        self.refused = False
        """Whether a filter before the control port forbids what this takes, so that circuits end together."""
        self._closing: tuple[trio.Nursery, ControlClient] | None = None

    def take(self, reply: bytes) -> bool:
        """Tell whether a reply as it came is about a stream, and close the circuit of one of ours that ended.

        Unparsed: a tor that many use has hundreds a second, of others.
        """
        if not reply.startswith(_STREAM):
            return False
        ended = self._ended.match(reply)
        if ended is not None and self._closing is not None and self._waiting < MAX_ENDED:
            nursery, control = self._closing
            self._waiting += 1
            nursery.start_soon(self._close, control, int(ended[1]))
        return True

    def note_refused(self) -> None:
        """Note that a filter forbids it, and log it once."""
        if not self.refused:
            self.refused = True
            log.warning("tor does not close circuits for us: they end together")

    async def run(self, control: ControlClient) -> None:
        """Close circuits over a control connection, until that is lost or the caller is cancelled."""
        async with trio.open_nursery() as nursery:
            self._closing = nursery, control
            try:
                await control.lost.wait()
            finally:
                self._closing = None
                nursery.cancel_scope.cancel()

    async def _close(self, control: ControlClient, circuit: int) -> None:
        try:
            await trio.sleep(uniform(self._randomness, *LINGER))
            with suppress(TransportError):
                # Unless it is unused, another stream of the same isolation has come.
                answer = status(await control.ask(f"CLOSECIRCUIT {circuit} IfUnused"))
                if answer not in (_CLOSED, _GONE):
                    self.note_refused()
        finally:
            self._waiting -= 1
