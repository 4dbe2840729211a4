"""What is counted of the central system."""

from __future__ import annotations

USER_COUNTERS = {
    "links_opened": "links whose handshake succeeded",
    "links_failed": "links that could not be opened or broke",
    "pseudonyms_introduced": "pseudonyms that a proxy and the server took",
    "deliveries_refused": "deliveries that did not open, or were not a message of their day",
    "answers_forged": "answers in the server's name that it did not give",
}
"""Of a daemon that publishes and subscribes; by name, with its meaning."""
