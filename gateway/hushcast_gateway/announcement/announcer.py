"""The announcer: keeps a responder running beside a gateway that is to be found in its house."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import msgspec
import trio

from hushcast_gateway.announcement.announcement import ANNOUNCED, Announcement
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.extras import how_to_get
from hushcast_runtime.logs import log

AGAIN = 60.0  # seconds until a responder that ended is started anew: a network may come up later
GOODBYE_WITHIN = 2.0  # seconds that it may take to tell others that the gateway is gone
_MODULE = "hushcast_gateway.announcement.responder"
_ANSWER = 200  # bytes of what it says that are looked at


class Announcer:
    """Has others told of a gateway; where that cannot be it works without."""

    def __init__(self, announced: Sequence[Announcement]) -> None:
        """Of one address. Raises `UsageError` where the extra is missing."""
        if find_spec("zeroconf") is None:
            raise UsageError(f"announce: this needs an extra: {how_to_get('gateway')}")
        self._announced = msgspec.json.encode(announced)

    async def run(self) -> None:
        """Announce until cancelled."""
        while True:
            await self._announce()
            await trio.sleep(AGAIN)

    async def _announce(self) -> None:
        """Run a responder, and return when it has ended."""
        responder = await trio.lowlevel.open_process(
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # a library's, with addresses
        )
        assert responder.stdin is not None
        assert responder.stdout is not None
        try:
            try:
                await responder.stdin.send_all(self._announced + b"\n")
                told = await responder.stdout.receive_some(_ANSWER)
            except trio.BrokenResourceError:
                told = b""
            if told == ANNOUNCED:
                log.info("announced")
            else:
                log.warning("the gateway cannot be announced", error=told.decode(errors="replace").strip())
            await responder.wait()
        finally:
            with trio.CancelScope(shield=True):
                await responder.stdin.aclose()
                with trio.move_on_after(GOODBYE_WITHIN):
                    await responder.wait()
                if responder.returncode is None:
                    responder.kill()
                    await responder.wait()
                await responder.stdout.aclose()
