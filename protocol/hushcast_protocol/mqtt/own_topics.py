"""What a broker tells of itself under `$SYS/broker/`: numbers of all clients together, of none alone."""

from __future__ import annotations

from collections.abc import Mapping

from hushcast_protocol.mqtt.kept.retained_messages import RetainedMessages
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage

PREFIX = "$SYS/broker/"


class OwnTopics:
    """The last values, retained apart from what clients retain."""

    def __init__(self, version: str) -> None:
        self.retained = RetainedMessages()
        self._version = version

    def update(self, uptime: float, clients: int, counts: Mapping[str, int]) -> list[MqttMessage]:
        """Return the messages whose values have changed; `uptime` is in seconds."""
        values = {
            "version": f"hushcast {self._version}",
            "uptime": f"{uptime:.0f} seconds",
            "clients/connected": str(clients),
            "messages/received": str(counts.get("messages_received", 0)),
            "messages/sent": str(counts.get("messages_sent", 0)),
        }
        changed = []
        for name, value in values.items():
            message = MqttMessage(PREFIX + name, value.encode(), retain=True)
            before = self.retained.put(message, None)
            if before is None or before.payload != message.payload:
                changed.append(message)
        return changed
