"""Marks: how an adversary that knows a topic finds its leases at a relay, without any message.

Each lease has one: the hash of its topic's trunk token and the relay. The same hash as `lease_mark` of
`hushcast_protocol.overlay.leases`, which needs more than the standard library; a test compares.
"""

from __future__ import annotations

import hashlib

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

_PERSON = b"hc.mark"
MARK = 16  # bytes


def lease_mark(trunk: bytes, relay: bytes) -> bytes:
    """Return the mark (16 bytes) of the leases of one topic and day at a relay."""
    data = len(trunk).to_bytes(8, "big") + trunk + len(relay).to_bytes(8, "big") + relay
    return hashlib.blake2b(data, person=_PERSON, digest_size=MARK).digest()


def _mark(trunk: str, relay: str) -> str | None:
    try:
        return lease_mark(bytes.fromhex(trunk), bytes.fromhex(relay)).hex()
    except ValueError:  # traces may hold anything
        return None


marks = F.udf(_mark, StringType(), useArrow=False)
"""The column of marks for a column of trunks and one of relays, all in hexadecimal; null for what is not."""
