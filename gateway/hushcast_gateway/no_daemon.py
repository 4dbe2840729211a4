"""A gateway without a daemon: what would travel is refused, rather than kept here in silence."""

from __future__ import annotations

from hushcast_protocol.mqtt.interfaces import NoNetwork
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.ways import OWN


class DaemonlessNetwork(NoNetwork):
    """A gateway without a daemon: what would travel is refused, rather than kept here in silence."""

    def takes(self, topic: str) -> bool:
        """Tell whether a topic would travel."""
        return topic.startswith(OWN)

    def is_local_too(self, topic: str) -> bool:
        """None is."""
        return False

    def publish(self, publication: NetworkPublication) -> int | None:
        """Refuse."""
        return Reason.TOPIC_NAME_INVALID

    def topics(self, topic: str) -> tuple[str, ...]:
        """It is nobody's here either."""
        return ()

    def will(self, publication: NetworkPublication) -> None:
        """Drop it."""

    def grants(self, user: str, wanted: str, qos: int) -> int:
        """Refuse what would be read from the network."""
        return Reason.TOPIC_FILTER_INVALID if self.takes(wanted) else qos
