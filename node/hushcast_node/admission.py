"""Admission: how many connections are served at once, and what becomes of one that goes wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import trio

from hushcast_protocol.errors import PeerError
from hushcast_runtime.counters import Counters
from hushcast_runtime.transports.base import TransportError

log = structlog.get_logger("admission")

Serve = Callable[[trio.abc.Stream], Awaitable[None]]


class Admission:
    """Wraps a handler of incoming streams: a cap, and an end for each kind of error that costs one stream."""

    def __init__(self, serve: Serve, most: int, counters: Counters) -> None:
        self._serve = serve
        self._most = most
        self._counters = counters
        self._served = 0

    async def admit(self, stream: trio.abc.Stream) -> None:
        """Serve a stream, or, over the cap, none."""
        if self._served >= self._most:
            self._counters.add("refused_quota")
            return
        self._served += 1
        try:
            await self._serve(stream)
        except PeerError as error:
            self._counters.add("refused_form")
            log.debug("a connection was refused", reason=str(error))
        except TransportError as error:
            log.debug("a connection ended", reason=str(error))
        except Exception:
            self._counters.add("internal_errors")
            log.exception("a connection met an error of this program")
        finally:
            self._served -= 1
