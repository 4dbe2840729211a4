"""Updates of reservations: other houses hear of each change that reaches what they retain of this one.

A house keeps a retained message with the reservations that it came with. When these change here, the change
follows it, without the message: it is for whoever retains the same payload. What others know is on disk, so
that a change of the configuration, or one in the moment of a kill, is told by the next start.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_gateway.broker_state import BrokerState
from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.purposes.rules import Purposes
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.mqtt.envelope import OpenedEnvelope
from hushcast_protocol.mqtt.mqtt_broker import MqttBroker
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.wire.packets import with_user_properties
from hushcast_protocol.purposes.carried_reservations import NOTHING, CarriedContent, payload_digest
from hushcast_protocol.purposes.message_purposes import reserved_under
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import Store

MAX_UNDER_WAY = 100  # updates that wait for the daemon: what clients publish has nine tenths of its places
LOOK_EVERY = 1.0  # seconds between two looks: a client may reserve many filters in a row
AGAIN = 60.0  # seconds until what could not be told is tried again

_KIND = RecordKind(
    "gateway-reserved",
    StateOwner.GATEWAY,
    holds="topics of what it retains, published, and reserved elsewhere by what other gateways were told",
    lifetime="until nothing is retained there, or nobody reserves it",
    bound="as many as messages are retained",
)


class ReservationUpdate(NetworkPublication):
    """What tells other gateways of the reservations of now; its payload is the digest of what is retained."""

    __slots__ = ()

    def __init__(self, topic: str, retained: MqttMessage) -> None:
        super().__init__(
            MqttMessage(topic, payload_digest(retained.payload), 1, properties=retained.properties), None
        )


class ReservationUpdates:
    """What other gateways know of the reservations of what is retained and was published here."""

    def __init__(
        self, purposes: Purposes, ways: NetworkWays, publish: Callable[[NetworkPublication], int | None]
    ) -> None:
        """`publish` returns why it is refused, `None` where `answered` hears of it later."""
        self._purposes = purposes
        self._ways = ways
        self._publish = publish
        self._told: dict[str, str] = {}
        self._under_way: set[str] = set()
        self._broker: MqttBroker | None = None

    async def run(self, state: BrokerState, store: Store) -> None:
        """Tell until cancelled, what changed since an earlier run, too."""
        self._broker = state.broker
        await restore(store, _KIND, lambda key, value: self._told.update({key.decode(): value.decode()}))
        while True:
            changed = self._purposes.changed
            is_all = await self._look(state)
            with trio.move_on_after(AGAIN if is_all else LOOK_EVERY):
                await changed.wait()
            await trio.sleep(LOOK_EVERY)

    def answered(self, publication: NetworkPublication, reason: int) -> None:
        """Hear that the daemon has a message for a topic that is retained here, or an update."""
        message = publication.message
        way = self._ways.way_of(message.topic)
        topic = message.topic if way is None else way.topics[0]
        is_update = isinstance(publication, ReservationUpdate)
        if is_update:
            self._under_way.discard(topic)
        if not reason and way is not None and way.carries and (message.retain or is_update):
            self._note(topic, publication.clauses)

    async def _look(self, state: BrokerState) -> bool:
        """Look through what is retained; return whether all that is to be told is under way."""
        left, is_all = set(self._told), True
        for found in state.broker.operator.retained("#"):
            if found is None:
                await trio.lowlevel.checkpoint()
                continue
            topic, way = found.message.topic, self._ways.way_of(found.message.topic)
            if found.user is None or way is None or not way.carries or topic != way.topics[0]:
                continue
            left.discard(topic)
            await trio.lowlevel.checkpoint()  # thousands of reservations may reach one topic
            given = found.message.properties.get("user_property", ())
            clauses = self._purposes.judge.carried(topic, given, False)
            if topic in self._under_way or self._told.get(topic, "") == (
                NOTHING if clauses is None else clauses
            ):
                continue
            if (
                len(self._under_way) < MAX_UNDER_WAY
                and self._publish(ReservationUpdate(topic, found.message)) is None
            ):
                self._under_way.add(topic)
            else:
                is_all = False
        for topic in left:
            self._note(topic, "")
        state.changed()
        return is_all

    def _note(self, topic: str, clauses: str) -> None:
        if self._told.get(topic, "") == clauses:
            return
        assert self._broker is not None, "nothing goes out before it runs"
        # What is answered late may be of something that is not retained any more.
        if clauses and any(self._broker.operator.retained(topic)):
            self._told[topic] = clauses
            self._broker.ledger.put(_KIND, topic.encode(), clauses.encode())
        elif self._told.pop(topic, None) is not None:
            self._broker.ledger.delete(_KIND, topic.encode())


def take_carried(
    broker: MqttBroker,
    topic: str,
    envelope: OpenedEnvelope,
    carried: CarriedContent,
    is_asked: bool,
    now: float,
) -> None:
    """Take what is given to nobody: an update, or what is reserved where nobody is asked for purposes.

    `is_asked`: here somebody is. Where not, what is retained goes once it is reserved, or its successor is.
    """
    found = next(filter(None, broker.operator.retained(topic)), None)
    if found is None:
        return
    kept, is_meant = found.message, envelope.payload == payload_digest(found.message.payload)
    if not is_asked:
        if (is_meant and carried.clauses) if carried.is_update else envelope.retain:
            broker.renew(MqttMessage(topic, b"", 1, True), now)
    elif is_meant and found.user is None:  # what was published here goes by the reservations here
        given = reserved_under(kept.properties.get("user_property", ()), carried.clauses)
        properties = with_user_properties(kept.properties, given)
        broker.renew(MqttMessage(topic, kept.payload, kept.qos, True, properties, kept.expires), now)
