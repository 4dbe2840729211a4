"""A gateway without a daemon: what would travel is refused, rather than kept here in silence."""

from __future__ import annotations

from hushcast_protocol.mqtt.interfaces import NoNetwork
from hushcast_protocol.mqtt.topics.ways import OWN


class DaemonlessNetwork(NoNetwork):
    """A gateway without a daemon: what would travel is refused, rather than kept here in silence."""

    def takes(self, topic: str) -> bool:
        """Tell whether a topic would travel."""
        return topic.startswith(OWN)
