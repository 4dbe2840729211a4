"""What an MQTT broker counts, never by client, user or topic."""

from __future__ import annotations

from hushcast_protocol.mqtt.refusals import RefusalCause, RefusedThing

_REFUSED = {
    RefusedThing.SUBSCRIPTION: "subscriptions refused",
    RefusedThing.CLIENT: "clients refused or disconnected",
    RefusedThing.MESSAGE: "messages dropped, or not retained,",
}
COUNTS = {
    "messages_received": "messages that clients published",
    "messages_sent": "messages sent to clients",
    "dropped_slow": "messages of QoS 0 not sent because the client does not read",
    "dropped_expired": "messages dropped because their time was over",
    "dropped_too_large": "messages larger than the client takes",
    "dropped_forbidden": "messages that a client may not have, or may not publish",
    "dropped_delayed": "delayed messages that the network beyond did not take when they were due",
    "withheld": "deliveries kept back because of what messages may be used for",
    "withdrawn": "messages deleted before they were handed out, because their publisher withdrew them",
    **{one.count: f"{_REFUSED[one.thing]} because {one.because}" for one in RefusalCause if one.count},
}
"""By name, with its meaning."""
