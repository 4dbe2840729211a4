"""The interface of transports, by which daemons reach each other: three transports, one conformance suite.

`tor` carries everything over onion services, `tcp` is loopback only, `memory` lives in one process
under a mock clock. Callers do not depend on which one it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import trio

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import HushcastError

StreamHandler = Callable[[trio.abc.Stream], Awaitable[bool | None]]
"""Takes a stream; returns true if it keeps it, and closes it itself."""


class TransportError(HushcastError):
    """The network below failed: no such service, no Tor, refused, timed out.

    Its text names the kind of failure and never the address.
    """


class TooLate(TransportError):
    """The other end did not answer in time; what was said may have come to it."""


class Listener(Protocol):
    """One reachable address of this daemon: a relay's own, the directory's."""

    @property
    def address(self) -> Address:
        """Where others reach this listener."""

    async def serve(self, handler: StreamHandler) -> None:
        """Run `handler` for every incoming stream, each in a task of its own, until cancelled.

        A handler that raises `Exception` costs its own stream only. The stream is closed after it, unless it
        is kept.
        """

    async def published(self) -> None:
        """Return once others can find the address (on `tor`: its descriptor was uploaded).

        Raises `TransportError` when that fails for good.
        """

    async def aclose(self) -> None:
        """Withdraw the address; streams already accepted are left to their handlers."""


class Transport(Protocol):
    """A way to be reached and to reach others."""

    async def listen(self, seed: Seed, previous: Address | None = None) -> Listener:
        """Open a listener whose address belongs to the Ed25519 key of `seed` (32 bytes).

        The same seed gives the same address where addresses are keys (`tor`, `memory`); `previous` is the
        address the caller had before and wants again where they are not (`tcp`).
        """

    async def connect(self, address: Address, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        """Connect to `address` on a path of its own for each `isolation`.

        Two different values of `isolation` (1 to 64 characters of the URL-safe base64 alphabet) never share
        a circuit. `ahead` is said first: on `tor` it goes with the request, and no round trip is waited for.
        The caller sets the deadline. Raises `TransportError`, and nothing else, whatever address a stranger
        gave. The stream, as one that came in, closes at once, whatever was not sent yet.
        """
