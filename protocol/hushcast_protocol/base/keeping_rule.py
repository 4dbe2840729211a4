"""The keeping rule: how many relays keep what is published, and for how long; authorities agree on it."""

from __future__ import annotations

from dataclasses import dataclass

MAX_KEEPERS = 6  # of a trunk and day: with 20 % of relays bad, six miss some 0.1 of 10,000 messages, five 0.5
MAX_DAYS_KEPT = 14  # days behind the running one: two weeks away is what others offer, and disks bear


@dataclass(frozen=True, slots=True)
class KeepingRule:
    """The rule of a network for what its relays keep (`network_rules.py` has how it is told)."""

    keepers: int = 0
    """Of each trunk and day, where there are three times as many relays, up to `MAX_KEEPERS`; 0: none."""
    days: int = MAX_DAYS_KEPT
    """For how many days after its own a message is kept, 1 to `MAX_DAYS_KEPT`."""


NOTHING_KEPT = KeepingRule()
"""No relay keeps what is published."""
