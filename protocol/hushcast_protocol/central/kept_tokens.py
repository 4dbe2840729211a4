"""The token by which what a server keeps is asked for, apart from those by which messages are routed.

Whoever asks by it gets all of the topic that is kept of one day, whatever conditions a subscription has, and
nothing of what is published from then on.
"""

from __future__ import annotations

from hushcast_protocol.base.hashes import LABEL, Domain, digest


def kept_token(trunk: bytes) -> bytes:
    """Return the token (16 bytes) of what is kept under a day's trunk."""
    return digest(Domain.KEPT, trunk, size=LABEL)
