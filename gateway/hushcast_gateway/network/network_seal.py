"""The network's seal as purposes have it: what leaves is for some purposes, and what comes says for which.

By an alias with keys a message opens for what it may be used for, and for nothing else. By one that carries
reservations it goes with these, and gateways that know of them go by them. By any other it leaves only where
all who have the link may use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from hushcast_gateway.network.network_publisher import TaggedPayload
from hushcast_gateway.network.reservation_updates import ReservationUpdate
from hushcast_gateway.network.withdrawal_sender import WithdrawalMessage
from hushcast_gateway.network_ways import NetworkWays, TopicWay
from hushcast_gateway.purposes.rules import Purposes
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.mqtt.envelope import OpenedEnvelope, disclose
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.ways import Way
from hushcast_protocol.mqtt.wire.packets import with_user_properties
from hushcast_protocol.purposes.carried_reservations import (
    NOTHING,
    CarriedContent,
    read_carried,
    write_carried,
)
from hushcast_protocol.purposes.inner_content import InnerContent
from hushcast_protocol.purposes.message_purposes import Pairs, marked, opened_for, reserved_under
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.sealed_messages import is_sealed
from hushcast_runtime.counters import Counters


class ArrivedMessage(NamedTuple):
    """What came, opened."""

    envelope: OpenedEnvelope
    carried: CarriedContent | None = None
    """The reservations that it came with, which stand in its properties, too; or what updates them."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "ArrivedMessage(...)"


class NetworkSeal:
    """Seals and opens by the ways of now."""

    def __init__(
        self, ways: NetworkWays, purposes: Purposes | None, counters: Counters, now: Callable[[], float]
    ) -> None:
        """Without `purposes` nothing is asked; `now` is Unix time."""
        self._ways = ways
        self._purposes = purposes
        self._counters = counters
        self._now = now

    def seal(self, publication: NetworkPublication, way: TopicWay, content: bytes) -> TaggedPayload | Reason:
        """Return what goes for a publication with this content, or why it does not."""
        sealed: tuple[bytes, frozenset[str]] | None
        try:
            if way.keyed is not None:
                sealed = self._by_keys(publication, way, content)
            elif isinstance(publication, WithdrawalMessage):
                return Reason.TOPIC_NAME_INVALID  # its alias has no keys any more
            else:
                plain = self._with_reservations(publication, way, content)
                sealed = None if plain is None else (plain, frozenset())
        except PeerError:
            self._counters.add("network_not_sealed")
            return Reason.IMPLEMENTATION_SPECIFIC_ERROR
        return Reason.NOT_AUTHORIZED if sealed is None else TaggedPayload(way.link, *sealed, way.attributes)

    def _by_keys(
        self, publication: NetworkPublication, way: TopicWay, content: bytes
    ) -> tuple[bytes, frozenset[str]] | None:
        message, purposes = publication.message, self._purposes
        assert way.keyed is not None
        assert purposes is not None, "a configuration with keys has purposes"
        if isinstance(publication, WithdrawalMessage):
            return way.keyed.withdraw(publication.unsent.lock, self._now())
        if isinstance(publication, ReservationUpdate) or purposes.withdrawals.is_withdrawn(
            message.properties
        ):
            return None
        given, is_deletion = (
            message.properties.get("user_property", ()),
            message.retain and not message.payload,
        )
        return purposes.judge.seal(way.keyed, content, message.topic, given, is_deletion, self._now())

    def _with_reservations(
        self, publication: NetworkPublication, way: TopicWay, content: bytes
    ) -> bytes | None:
        message, purposes = publication.message, self._purposes
        is_update = isinstance(publication, ReservationUpdate)
        given = message.properties.get("user_property", ())
        if purposes is None or not way.carries:
            may_leave = purposes is None or purposes.judge.may_leave(message.topic, given, way.use)
            return content if may_leave and not is_update else None
        is_deletion = message.retain and not message.payload
        clauses = purposes.judge.carried(message.topic, given, is_deletion)
        if clauses is None and is_update:
            clauses = NOTHING  # what can be said no more closes
        if clauses is None:
            return None
        publication.clauses = clauses
        if not clauses and not is_update:
            return content
        return write_carried(CarriedContent(clauses, content, is_update))

    def open(self, way: Way, payload: bytes) -> ArrivedMessage | InnerContent | None:
        """Return what is in a message, or that it withdraws others.

        `None` where it is sealed and does not open, or ought to be sealed.
        """
        keyed = self._ways.keys_of(way)
        if keyed is None:
            if way.is_open or not is_sealed(payload):
                return ArrivedMessage(disclose(payload))
            carried = read_carried(payload)
            if carried is None:
                return None
            envelope = disclose(carried.content)
            given = reserved_under(envelope.properties.get("user_property", ()), carried.clauses)
            return ArrivedMessage(_with(envelope, given), carried)
        try:
            opened, inside = keyed.open(payload)
        except PurposeError:
            return None
        if inside.lock:
            return inside
        envelope = disclose(inside.content)
        given = marked(envelope.properties.get("user_property", ()), inside.withdrawn_by)
        return ArrivedMessage(_with(envelope, opened_for(given, opened)))


def _with(envelope: OpenedEnvelope, given: Pairs) -> OpenedEnvelope:
    return replace(envelope, properties=with_user_properties(envelope.properties, given))
