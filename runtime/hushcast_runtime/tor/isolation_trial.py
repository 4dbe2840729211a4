"""Whether a SOCKS port isolates by user name and password, found out without asking its tor.

Onion services of ours close a circuit that more than `MAX_STREAMS` connections are open on at once. So one
connection more, each with an isolation of its own, holds only where they do not share a circuit.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

import trio

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import unraised
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.tor.control import MAX_STREAMS
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import HANDSHAKE_TIMEOUT

HELD_FOR = 1.0  # seconds; a circuit's end is told before the next connection is there
_TELLING = 0.8 * HANDSHAKE_TIMEOUT  # seconds; services themselves end what says nothing, a little later
_TAG_BYTES = 18  # of randomness in an isolation that nothing else has

OpenStream = Callable[[str], Awaitable[trio.SocketStream]]
"""Connects to one onion service of ours with the isolation given; raises `TransportError`."""


class SharedCircuitError(TransportError):
    """Connections that were to be isolated from each other ended together."""

    def __init__(self) -> None:
        super().__init__(
            "tor's SOCKS port does not isolate: take NoIsolateSOCKSAuth out of its SocksPort line, "
            "or name another port"
        )


async def isolated_stream(
    open_stream: OpenStream, isolation: str, randomness: Randomness
) -> trio.SocketStream:
    """Return a stream with this isolation, nothing said on it, once it held beside `MAX_STREAMS` others.

    Raises `SharedCircuitError` if one of them ended, `TransportError` with the reason if not all were opened.
    """
    tags = [isolation, *(randomness(_TAG_BYTES).hex() for _ in range(MAX_STREAMS))]
    try:
        return await _Trial(open_stream).held(tags, [])
    except SharedCircuitError:
        raise
    except TransportError:
        # A circuit that has too many at once may end before any of them is there, which looks like a service
        # out of reach. One that is there before shows which of the two it is.
        return await _Trial(open_stream).held(tags[:1], tags[1:])


class _Trial:
    """Streams to one service that are open at once."""

    def __init__(self, open_stream: OpenStream) -> None:
        self._open_stream = open_stream
        self._streams: dict[str, trio.SocketStream] = {}
        self._failed: list[TransportError] = []

    async def held(self, first: list[str], later: list[str]) -> trio.SocketStream:
        """Open streams with these isolations; return the first of them if all held."""
        wanted = None
        try:
            with ungrouped(SharedCircuitError):
                async with trio.open_nursery() as watching:
                    await self._open_all(first, watching)
                    if not self._failed:
                        await self._open_all(later, watching)
                    await trio.sleep(HELD_FOR if self._streams else 0)
                    watching.cancel_scope.cancel()
            if self._failed:
                raise self._failed[0]
            wanted = self._streams[first[0]]
            return wanted
        finally:
            for stream in self._streams.values():
                if stream is not wanted:
                    await trio.aclose_forcefully(stream)

    async def _open_all(self, tags: list[str], watching: trio.Nursery) -> None:
        async with trio.open_nursery() as opening:
            for tag in tags:
                opening.start_soon(self._open, tag, watching)

    async def _open(self, tag: str, watching: trio.Nursery) -> None:
        try:
            stream = self._streams[tag] = await self._open_stream(tag)
        except TransportError as error:
            self._failed.append(unraised(error))
        else:
            watching.start_soon(self._watch, stream)

    async def _watch(self, stream: trio.SocketStream) -> None:
        """Raise `SharedCircuitError` if a stream ends; what it brings stays to be read."""
        began = trio.current_time()
        try:
            if await stream.socket.recv(1, socket.MSG_PEEK):
                return
        except OSError:
            pass
        if trio.current_time() - began < _TELLING:
            raise SharedCircuitError
        self._failed.append(TransportError("tor took too long to show whether its SOCKS port isolates"))
