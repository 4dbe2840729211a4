"""Corrupt routers: what an adversary's relay decides otherwise than an honest one."""

from __future__ import annotations

from hushcast_protocol.overlay.forwarding import Router


class CorruptRouter(Router):
    """Takes the place of an honest router, and decides as that one did, but for what a subclass changes."""

    def __init__(self, honest: Router) -> None:
        """Take over all that the honest one knows; only this one takes fresh labels from then on."""
        vars(self).update(vars(honest))
