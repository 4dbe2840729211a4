"""A publication: a message on its way to the network beyond, and the client that waits for the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.connections import HeldPacket, MqttConnection
    from hushcast_protocol.mqtt.kept.delayed_messages import DelayedMessage


class NetworkPublication:
    """One value from the PUBLISH to its answer: each who handles it writes down what the next has to know."""

    __slots__ = (
        *(
            "clauses",
            "content",
            "delay",
            "delayed",
            "deletes_here",
            "held",
            "is_owed",
            "is_spread",
            "is_will",
            "lane",
        ),
        *("lapses", "link", "made_before", "message", "packet_id", "retained_for", "token", "user"),
    )

    def __init__(self, message: MqttMessage, user: User, token: bytes = b"") -> None:
        """`user` is whose message it is."""
        self.message = message
        self.user = user
        self.token = token
        """16 random bytes by which it is known when it is handed over again; none where it never is."""
        self.link: MqttConnection | None = None
        """By which it came; `None` for a will, and for what no client waits for."""
        self.held: HeldPacket | None = None
        """The place of the answer, which QoS 0 has not."""
        self.packet_id = 0
        self.is_will = False
        self.is_spread = False
        """Whether the clients here have it already, whatever becomes of it beyond."""
        self.is_owed = False
        """Whether other houses are still to hear of what is retained here already."""
        self.delayed: DelayedMessage | None = None
        """What waited to be published now."""
        self.deletes_here = False
        """Whether what is retained here goes, too, once the network beyond has it: an operator deletes it."""
        self.made_before = 0
        """What was `Ledger.made` before anything of it was written."""
        self.content = b""
        """As the network beyond makes it of the message, before it is sealed."""
        self.clauses = ""
        """The reservations that it was made with, where they travel."""
        self.lane = ""
        """Its topic by the name that all gateways have: what is of one goes in order."""
        self.delay = 0.0
        """Seconds that it waits before it goes."""
        self.lapses = False
        """Whether it is not to go once there is something newer to be retained."""
        self.retained_for = ""
        """The one name of the topic that it is to be retained for; empty for none."""
