"""The connection guard: lets connections in at an address of this daemon, and ends those that go wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from hushcast_protocol.base.errors import PeerError
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_STRANGERS = 1024  # connections to one address, before their handshake is done or while they stay unnamed


FrameT = TypeVar("FrameT")

Accept = Callable[[trio.abc.Stream], Awaitable[Channel[FrameT]]]
Serve = Callable[[Channel[FrameT]], Awaitable[bool | None]]
"""Serves a channel; returns true if it keeps it, and closes it itself."""


def strangers_room(env: Environment, counters: Counters) -> ConnectionSlots:
    """Return the places for those of whom nothing is known; one that gives way is counted."""
    return ConnectionSlots(MAX_STRANGERS, env.below, counters.add, "strangers_dropped")


class ConnectionGuard(Generic[FrameT]):
    """Handles incoming streams: until the handshake in a slot for strangers, then served, or over a cap not.

    A cap counts those who have shown a name. Whoever serves the others has to limit them.
    """

    def __init__(
        self, accept: Accept[FrameT], serve: Serve[FrameT], most: int, env: Environment, counters: Counters
    ) -> None:
        self._accept = accept
        self._serve = serve
        self._most = most
        self._counters = counters
        self._strangers = strangers_room(env, counters)
        self._named = 0

    async def admit(self, stream: trio.abc.Stream) -> bool:
        """Take a stream through the handshake, which has its own deadline, and serve it.

        Returns whether it is kept.
        """
        named = is_kept = False
        try:
            with self._strangers.place():
                channel = await self._accept(stream)
            try:
                if channel.peer is not None:
                    if self._named >= self._most:
                        self._counters.add("refused_quota")
                        return False
                    named = True
                    self._named += 1
                is_kept = bool(await self._serve(channel))
                if is_kept:
                    channel.when_closed(self._leave)
            finally:
                if not is_kept:
                    await channel.aclose()
        except PeerError as error:
            self._counters.add("refused_form")
            log.debug("a connection was refused", reason=str(error))
        except TransportError as error:
            log.debug("a connection ended", reason=str(error))
        except Exception:
            self._counters.add("internal_errors")
            log.exception("a connection met an error of this program")
        finally:
            if named and not is_kept:
                self._leave()
        return is_kept

    def _leave(self) -> None:
        self._named -= 1
