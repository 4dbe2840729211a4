"""Who watches a daemon's line where it meets its tor: a SOCKS port that passes all on, and notes what passes.

It sees each connection apart, and bytes before Tor fills cells with them: more than who watches the line
between a tor and its network.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import trio

from hushcast_runtime.transports.endpoints import Endpoint, open_endpoint
from hushcast_runtime.transports.streams import LOOPBACK
from hushcast_testnet.tor.distance_proxy import pass_on


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that were read at once."""

    at: float
    """Unix time."""
    connection: int
    """The n-th that the daemon opened."""
    is_upward: bool
    size: int


class SocksWatch:
    """The watched port of one daemon, before a tor's."""

    def __init__(self, socks: Endpoint) -> None:
        self._socks = socks
        self._opened = 0
        self.seen: list[Piece] = []
        self.port = 0

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Pass connections on until cancelled; `port` is open from the start on."""
        listeners = await trio.open_tcp_listeners(0, host=LOOPBACK, backlog=None)
        self.port = listeners[0].socket.getsockname()[1]
        task_status.started()
        await trio.serve_listeners(self._carry, listeners)

    async def _carry(self, stream: trio.SocketStream) -> None:
        number, self._opened = self._opened, self._opened + 1
        up, down = (partial(self._note, number, is_upward) for is_upward in (True, False))
        async with stream, await open_endpoint(self._socks) as onward, trio.open_nursery() as nursery:
            nursery.start_soon(partial(pass_on, stream, onward, 0.0, left=up))
            nursery.start_soon(partial(pass_on, onward, stream, 0.0, left=down))

    def _note(self, connection: int, is_upward: bool, size: int) -> None:
        self.seen.append(Piece(time.time(), connection, is_upward, size))
