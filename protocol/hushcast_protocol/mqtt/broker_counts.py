"""What an MQTT broker counts, never by client, user or topic."""

from __future__ import annotations

from hushcast_protocol.mqtt.refused_subscriptions import RefusalCause

COUNTS = {
    "messages_received": "messages that clients published",
    "messages_sent": "messages sent to clients",
    "dropped_slow": "messages of QoS 0 not sent because the client does not read",
    "dropped_queue_full": "messages dropped because a session's queue was full",
    "dropped_all_full": "messages dropped because the sessions of their reader's user hold its share of all",
    "dropped_expired": "messages dropped because their time was over",
    "dropped_too_large": "messages larger than the client takes",
    "dropped_forbidden": "messages that a client may not have, or may not publish",
    "withheld": "deliveries kept back because of what messages may be used for",
    "withdrawn": "messages deleted before they were handed out, because their publisher withdrew them",
    "not_retained": "messages not retained because their publisher's user has its share of all",
    **{one.count: f"subscriptions refused because {one.value}" for one in RefusalCause},
}
"""By name, with its meaning."""
