"""An onion service of this daemon: its local socket for tor, its name at tor, whether others can find it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from hushcast_protocol.base.addresses import Address, onion_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.logs import log
from hushcast_runtime.tor.onions import expanded_key, service_of
from hushcast_runtime.tor.publication import DescriptorPublication
from hushcast_runtime.transports.base import StreamHandler, TransportError
from hushcast_runtime.transports.endpoints import Endpoint
from hushcast_runtime.transports.streams import serve_streams

_SLOW = 10.0  # seconds; a directory that takes longer to answer an upload is not waited for

Withdraw = Callable[["TorListener"], Awaitable[None]]
Admits = Callable[[trio.SocketStream], Awaitable[bool]]
"""Tells whether a stream came from tor."""


class TorListener:
    """Implements `Listener` with an onion service; made by `TorTransport.listen`."""

    def __init__(
        self,
        seed: Seed,
        listener: trio.SocketListener,
        target: Endpoint,
        withdraw: Withdraw,
        published_within: float,
        admits: Admits,
    ) -> None:
        self._seed = seed
        self._listener = listener
        self.target = target
        """The loopback port or Unix socket that tor passes incoming streams to."""
        self._withdraw = withdraw
        self._published_within = published_within
        self._admits = admits
        self._address = onion_address(seed.public())
        self.publication = DescriptorPublication()
        """Where the transport reports the events about this service."""
        self._closed = False
        self._refused = False

    @property
    def address(self) -> Address:
        """The onion address, which is the public key of the seed."""
        return self._address

    @property
    def service(self) -> str:
        """The name tor knows the service by: 56 characters."""
        return service_of(self._address)

    @property
    def key(self) -> str:
        """The service's key in tor's form."""
        return expanded_key(self._seed)

    async def serve(self, handler: StreamHandler) -> None:
        """Run `handler` for every incoming stream until cancelled, see `Listener.serve`."""

        async def admitted(stream: trio.abc.Stream) -> bool | None:
            assert isinstance(stream, trio.SocketStream)
            if await self._admits(stream):
                return await handler(stream)
            if not self._refused:  # once: otherwise any local user could fill the log
                self._refused = True
                log.warning("a stream for an onion service did not come from tor: refused")
            return False

        await serve_streams(self._listener, admitted)

    async def published(self) -> None:
        """Return once directories hold the service's descriptors: all of them, or some and the rest are slow.

        Raises `TransportError` when that takes longer than the settings allow or the service is closed. A
        refused upload is not the end: tor tries again by itself.
        """
        with trio.move_on_after(self._published_within):
            publication = None
            while publication is not self.publication:  # again where its tor went away meanwhile
                publication = self.publication
                await publication.held.wait()
                with trio.move_on_after(_SLOW):
                    await publication.complete.wait()
        if self._closed:
            raise TransportError("the onion service was closed")
        if not self.publication.held.is_set():
            raise TransportError("tor has not published the onion service in time")

    def lose(self) -> None:
        """Forget what was published: the tor is gone that had the service, and it will be added anew."""
        before, self.publication = self.publication, DescriptorPublication()
        before.end()

    async def aclose(self) -> None:
        """Withdraw the service and close its socket; streams already accepted are left to their handlers."""
        self._closed = True
        self.publication.end()
        try:
            await self._withdraw(self)
        finally:
            self.remove_socket()
            await self._listener.aclose()

    def remove_socket(self) -> None:
        """Remove the Unix socket from its directory, if it is one; nobody connects any more."""
        if self.target.path:
            Path(self.target.path).unlink(missing_ok=True)
