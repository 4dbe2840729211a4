"""What a gateway counts and measures, never by client, user or topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hushcast_protocol.mqtt.broker_counts import COUNTS
from hushcast_runtime.counters import COMMON_COUNTERS, Counters

OWN_COUNTERS = {
    "handshakes_failed": "connections over TLS or WebSockets that came to nothing before MQTT was spoken",
    "handshakes_dropped": "of these, connections that gave way to newer ones because 128 of them were open",
    "http_requests": "requests over HTTP that were answered",
    "http_refused": "of these, requests that were refused: what a client may not or cannot have",
    "clients_refused": "clients that were not let in: unknown, a wrong password, or too many at once",
    "network_published": "messages of clients that the daemon has in its outbox, or, as configured, a relay",
    "network_refused": "messages of clients that the daemon refused, or that were too many",
    "network_arrived": "messages that came over the network",
    "network_late": "of these, messages that came when newer ones of their topic had been given out",
    "network_not_sealed": "messages of clients that an alias had no keys for: its vocabulary is not for now",
    "network_not_opened": "messages that came by an alias sealed, or reserved, and could be given to nobody",
    "network_withdrawals": "messages by which a publisher elsewhere withdrew what it had published",
    "network_subscriptions_refused": "subscriptions that the daemon refused, or for which there is no place",
    **COMMON_COUNTERS,
}
PURPOSE_COUNTERS = {
    "purposes_allowed": "decisions that a subscription may have a topic's messages, by what they are for",
    "purposes_refused": "decisions that it may not",
    "purposes_errors": "decisions that could not be made: nothing was delivered; please report them",
    "purpose_commands": "reservations, presubscriptions and other commands of clients",
    "purpose_commands_refused": "of these, and of subscriptions, those that were refused because of purposes",
}
"""Of a gateway that asks what messages are for."""
MQTT = "mqtt_"
"""What the broker counts begins with this: a daemon counts messages, too, and other ones."""
GATEWAY_COUNTERS = (
    OWN_COUNTERS | PURPOSE_COUNTERS | {MQTT + name: meaning for name, meaning in COUNTS.items()}
)
"""By name, with its meaning."""
GATEWAY_GAUGES = {
    "ready": "1 when the gateway is ready, else 0",
    "mqtt_clients": "clients that are connected",
    "mqtt_sessions": "sessions of clients that are here or away",
    "mqtt_subscriptions": "subscriptions of all sessions",
    "mqtt_retained": "retained messages",
    "mqtt_delayed": "messages that wait to be published, to `$delayed/…`",
    "mqtt_history": "messages that are kept of topics with a history",
    "network_topics": "topics of the network that clients are subscribed to, or were within two hours",
    "network_held": "messages that came over the network and wait for one before them",
    "network_ready": "1 when the daemon has answered, else 0",
    "purposes_reserved": "reservations, those of the configuration included",
    "purposes_paused": "subscriptions that get nothing because of reservations within their filter",
    "mqtt_held_bytes": "bytes of the messages that wait in sessions, in each of them",
}
"""Every gauge with its meaning."""


class GatewayCounters(Counters):
    """Counts of the process, and beside them what others keep for themselves."""

    def __init__(self, beside: Callable[[], Mapping[str, int]] = dict) -> None:
        """`beside` gives those others, by the names that are declared here."""
        super().__init__(GATEWAY_COUNTERS)
        self._beside = beside

    def as_dict(self) -> dict[str, int]:
        """Return all counts."""
        return super().as_dict() | dict(self._beside())
