"""One client's session: its subscriptions, and the messages that wait for it or are under way (section 4.1).

A session of which nobody hears for longer than its expiry ends; one with an expiry of 0 ends with its
connection and is never written to disk.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum
from typing import TYPE_CHECKING

from hushcast_protocol.mqtt.kept.retained_messages import FoundMessages
from hushcast_protocol.mqtt.limits import MAX_WINDOW_BYTES
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.wire.packets import RequestedSubscription, Will

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.connections import MqttConnection

LAST_ID = 65_535


class DeliveryState(IntEnum):
    """How far a message of QoS 1 or 2 has come on its way to a client."""

    WAITING = 0
    SENT = 1
    """PUBLISH was sent, its PUBACK or PUBREC is awaited."""
    RELEASED = 2
    """PUBREL was sent, its PUBCOMP is awaited; the message itself is forgotten."""


class GrantedSubscription:
    """A subscription as it stands; `share` is the group's name, empty for none."""

    __slots__ = ("identifier", "no_local", "purpose", "qos", "retain_as_published", "share", "wanted")

    def __init__(
        self,
        wanted: str,
        share: str,
        asked: RequestedSubscription,
        qos: int,
        identifier: int,
        purpose: str = "",
    ) -> None:
        """`identifier` is 0 for none; `purpose` is as `ResolvedFilter` has it."""
        self.wanted = wanted
        self.share = share
        self.purpose = purpose
        self.qos = qos
        self.no_local = asked.no_local
        self.retain_as_published = asked.retain_as_published
        self.identifier = identifier


class PendingMessage:
    """A message of QoS 1 or 2 for one client. `order` counts up in a session."""

    __slots__ = ("flying", "ids", "message", "order", "packet_id", "qos", "retain", "share", "size", "state")

    def __init__(
        self,
        message: MqttMessage | None,
        qos: int,
        retain: bool,
        ids: tuple[int, ...],
        share: str,
        order: int,
    ) -> None:
        """`share` is `GROUP/FILTER` if it came by a shared subscription, else empty."""
        self.message = message
        self.qos = qos
        self.retain = retain
        self.ids = ids
        self.share = share
        self.order = order
        self.packet_id = 0
        self.state = DeliveryState.WAITING
        self.size = 0 if message is None else message.size
        """Bytes that it counts among those that wait, or are under way."""
        self.flying = False
        """Whether it counts against the receive maximum of this connection."""


class MqttSession:
    """All that a broker knows of a client beside its connection."""

    __slots__ = (
        *(
            "client_id",
            "ends",
            "expiry",
            "filters",
            "flying",
            "flying_bytes",
            "has_will_record",
            "incoming",
            "inflight",
            "is_durable",
            "link",
        ),
        *(
            "next_order",
            "number",
            "offered",
            "pending",
            "permissions",
            "queue",
            "queue_bytes",
            "resend",
            "tokens",
        ),
        *("user", "will", "will_due", "window", "_last_id"),
    )

    def __init__(self, permissions: Permissions, client_id: str, number: int, expiry: int) -> None:
        """`expiry` is in seconds; `number` names the session on disk."""
        self.permissions = permissions
        """Of its last connection; after a restart what its user may do then."""
        self.user = permissions.user
        self.client_id = client_id
        self.number = number
        self.expiry = expiry
        self.is_durable = expiry > 0
        self.link: MqttConnection | None = None
        self.ends: float | None = None
        """When it ends, while its client is away."""
        self.will: Will | None = None
        self.has_will_record = False
        """Whether a session that is not durable has its will on disk."""
        self.will_due: float | None = None
        """When the will is published, while its client is away."""
        self.filters: dict[str, GrantedSubscription] = {}
        """By filter as the client wrote it, `$share/GROUP/` included."""
        self.incoming: set[int] = set()
        """Packet identifiers of QoS 2 that were received and not released."""
        self.pending: set[int] = set()
        """Those that were handed to the network beyond, which has not answered yet."""
        self.tokens: dict[int, bytes] = {}
        """By which the network knows what it was handed and, as far as the disk knows, has not answered."""
        self.queue: deque[PendingMessage] = deque()
        self.queue_bytes = 0
        self.offered: deque[tuple[FoundMessages, GrantedSubscription]] = deque()
        """Retained messages that new subscriptions are still to get."""
        self.inflight: dict[int, PendingMessage] = {}
        self.resend: deque[PendingMessage] = deque()
        """Those under way when the connection began, until they were sent again."""
        self.flying = 0
        self.flying_bytes = 0
        self.window = 0
        self.next_order = 1
        self._last_id = 0

    def attach(self, link: MqttConnection, window: int) -> None:
        """Begin a connection; `window` is how many messages of QoS 1 and 2 may be under way."""
        self.link = link
        self.permissions = link.permissions
        self.ends = self.will_due = None
        self.window = window
        self.flying = self.flying_bytes = 0
        for entry in self.inflight.values():
            entry.flying = False
        self.resend = deque(self.inflight.values())

    def has_window(self) -> bool:
        """Tell whether one more message of QoS 1 or 2 may be sent, under an identifier of its own."""
        return (
            self.flying < self.window
            and self.flying_bytes < MAX_WINDOW_BYTES
            and len(self.inflight) < LAST_ID
        )

    def entry(
        self, message: MqttMessage, qos: int, retain: bool, ids: tuple[int, ...], share: str
    ) -> PendingMessage:
        """Return a new entry behind all others; it is not in any queue yet."""
        entry = PendingMessage(message, qos, retain, ids, share, self.next_order)
        self.next_order += 1
        return entry

    def launch(self, entry: PendingMessage) -> None:
        """Count an entry as under way; a new one gets a packet identifier."""
        if entry.state is DeliveryState.WAITING:
            entry.packet_id = self._free_id()
            entry.state = DeliveryState.SENT
            self.inflight[entry.packet_id] = entry
        entry.flying = True
        self.flying += 1
        self.flying_bytes += entry.size

    def restored(self, entry: PendingMessage) -> None:
        """Take an entry from disk; they come in order."""
        self.next_order = entry.order + 1
        if entry.state is DeliveryState.WAITING:
            self.queue.append(entry)
        else:
            self.inflight[entry.packet_id] = entry
            self._last_id = entry.packet_id

    def to_resend(self) -> list[PendingMessage]:
        """Return what was sent by an earlier connection and would be sent again by this one, or the next."""
        of = self.inflight.values() if self.link is None else self.resend
        return [entry for entry in of if self.inflight.get(entry.packet_id) is entry]

    def acknowledged(self, packet_id: int) -> PendingMessage | None:
        """Return the entry that a PUBACK ends; `None` if there is none; `PacketError` if it is of QoS 2."""
        entry = self.inflight.get(packet_id)
        if entry is None:
            return None
        if entry.qos != 1:
            raise PacketError(Reason.PROTOCOL_ERROR, "a PUBACK for a message of QoS 2")
        return self._land(entry)

    def received(self, packet_id: int, reason: int) -> PendingMessage | None:
        """Return the entry that a PUBREC is for, ended if that refuses it; errors as `acknowledged`."""
        entry = self.inflight.get(packet_id)
        if entry is None:
            return None
        if entry.qos != 2:
            raise PacketError(Reason.PROTOCOL_ERROR, "a PUBREC for a message of QoS 1")
        if reason >= Reason.UNSPECIFIED_ERROR:
            return self._land(entry)
        entry.state = DeliveryState.RELEASED
        if entry.flying:
            self.flying_bytes -= entry.size
        entry.size = 0
        return entry

    def completed(self, packet_id: int) -> PendingMessage | None:
        """Return the entry that a PUBCOMP ends; errors as `acknowledged`."""
        entry = self.inflight.get(packet_id)
        if entry is None:
            return None
        if entry.state is not DeliveryState.RELEASED:
            raise PacketError(Reason.PROTOCOL_ERROR, "a PUBCOMP for a message that was not released")
        return self._land(entry)

    def drop(self, entry: PendingMessage) -> None:
        """Forget an entry under way that can never be sent."""
        self._land(entry)

    def _land(self, entry: PendingMessage) -> PendingMessage:
        del self.inflight[entry.packet_id]
        if entry.flying:
            entry.flying = False
            self.flying -= 1
            self.flying_bytes -= entry.size
        return entry

    def _free_id(self) -> int:
        """Return a packet identifier that is not in use: `has_window` said that there is one."""
        number = self._last_id
        while True:
            number = number % LAST_ID + 1
            if number not in self.inflight:
                self._last_id = number
                return number
