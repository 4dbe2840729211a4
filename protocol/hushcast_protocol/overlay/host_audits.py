"""Audits of hosts: when an owner asks a keeper, which one, and for which day.

An owner asks once a day for each topic, for the ids of a whole day gone by, whatever it has of it. What it
asks is what any reader of the topic would, and its moment is drawn once for each day: who was away then asks
nothing instead, so that no question tells of a return.
"""

from __future__ import annotations

from typing import NamedTuple

from hushcast_protocol.base.crypto.hashes import Domain, digest

FIRST_DAY = 2  # days before its own that an audit may be of: hosts ask for yesterday until an epoch after it


class HostAudit(NamedTuple):
    """What is asked for one topic on one day."""

    moment: float
    """Share of the day at which it is asked, from 0 to less than 1."""
    day: int
    """The day whose messages are asked for."""
    place: int
    """Which of its keepers is asked: this, modulo their number."""


def drawn_audit(name: bytes, today: int, days_kept: int) -> HostAudit | None:
    """Draw the audit of a day, the same each time; `name` are 16 random bytes that nobody else knows.

    `None` where nothing is kept for so long.
    """
    if days_kept < FIRST_DAY:
        return None
    drawn = digest(Domain.AUDIT, name, today.to_bytes(8, "big"))
    moment, back, place = (int.from_bytes(drawn[start : start + 8], "big") for start in (0, 8, 16))
    # The highest 53 bits: more would round up to the day after.
    day = today - FIRST_DAY - back % (days_kept - FIRST_DAY + 1)
    return HostAudit((moment >> 11) / (1 << 53), day, place)
