"""What is counted of applications' messages."""

from __future__ import annotations

LOCAL_COUNTERS = {
    "messages_delivered": "messages put into the inbox",
    "messages_lost_inbox": "messages dropped from the inbox unacknowledged: too old, or it was full",
    "messages_excess": "messages that came and did not match what was wanted",
    "messages_not_ours": "messages that came and do not open under its topic",
    "probes_sent": "probes that the network took over",
    "gaps_found": "messages that other subscribers report, or that keepers had, and that did not come",
    "publications_given_up": "publications that nobody took within 14 days, signed ones on their day, "
    "or that nobody shows who should keep them",
    "publications_dropped_anew": "drops of publications that relays took and keepers did not show",
    "publications_not_looked_for": "publications that keepers were not asked for: too many waited for that",
}
"""By name, with its meaning."""
