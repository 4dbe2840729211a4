"""What is told of each party: its beliefs by definition, and shares of what it sees. It needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hushcast_analytics.attacks.catalogue import Subject

DEFINITIONS: dict[str, Subject] = {
    "publisher": "message",
    "subscriber": "topic",
    "subscription": "participant",
}
"""The definitions of VB §3, and what the trials of each are about."""

SHARES = {
    "subscriptions_linked": "pairs of one user's subscriptions that the party sees to be one user's",
    "publications_linked": "pairs of one user's publications that it sees to be one user's",
    "deliveries_tied": "deliveries that it sees to be of a publication that it saw",
    "subscriptions_named": "subscriptions whose topics it recognises",
    "publications_named": "publications whose topics it recognises",
    "bodies_read": "messages whose bodies it reads",
}
"""What else a party learns: by name, what each is a share of."""
