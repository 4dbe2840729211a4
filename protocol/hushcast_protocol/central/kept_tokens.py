"""The token by which what a server keeps is asked for, apart from those by which messages are routed.

Whoever asks by it gets all of the topic that is kept of one day, whatever conditions a subscription has, and
nothing of what is published from then on.
"""

from __future__ import annotations

import struct

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest

_DAY = struct.Struct(">Q")


def kept_token(day: int, trunk: bytes) -> bytes:
    """Return the token (16 bytes) of what is kept of a day under a trunk.

    Nothing ties a trunk to its day, and who knows one could else put a message of another day in its place.
    """
    return digest(Domain.KEPT, _DAY.pack(day), trunk, size=LABEL)
