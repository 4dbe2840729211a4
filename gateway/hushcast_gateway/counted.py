"""What a gateway counts, never by client, user or topic."""

from __future__ import annotations

GATEWAY_COUNTERS = {
    "handshakes_failed": "connections over TLS or WebSockets that came to nothing before MQTT was spoken",
    "handshakes_dropped": "of these, connections that gave way to newer ones because 128 of them were open",
    "clients_refused": "clients that were not let in: unknown, a wrong password, or too many at once",
}
"""By name, with its meaning."""
