"""Who connected: what is known of a client before it has said anything."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientPeer:
    """The other end of a connection. Its address is not kept: nothing is decided by it."""

    local: bool
    """Whether it is on this machine: at a loopback address or a Unix socket."""
    uid: int | None = None
    """At a Unix socket: the user that the kernel says it is."""
    certificate: str | None = None
    """Over TLS: the common name of the certificate that it proved to own."""
    guest: str | None = None
    """The user that it is where it does not say who: of a request that pushes to a topic by its name."""

    def __repr__(self) -> str:
        """Show nobody's name."""
        return f"ClientPeer(local={self.local})"
