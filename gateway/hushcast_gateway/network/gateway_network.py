"""The network as the broker sees it: topics that travel, by their ways, out and in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import trio

import hushcast
from hushcast.keys import new_token
from hushcast_gateway.broker_state import BrokerState
from hushcast_gateway.network.daemon_link import DaemonLink
from hushcast_gateway.network.latest_ids import LatestIds
from hushcast_gateway.network.network_publisher import NetworkPublisher, TaggedPayload
from hushcast_gateway.network.network_reader import NetworkReader
from hushcast_gateway.network.network_seal import ArrivedMessage, NetworkSeal
from hushcast_gateway.network.numbered_topics import HandOut, NumberedTopics
from hushcast_gateway.network.reservation_updates import ReservationUpdates, take_carried
from hushcast_gateway.network.retained_backlog import RetainedBacklog
from hushcast_gateway.network.retained_refresh import RetainedRefresh
from hushcast_gateway.network.withdrawal_sender import WithdrawalMessage, WithdrawalSender
from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.mqtt.arrival_order import ReleasedArrival, stream_of
from hushcast_protocol.mqtt.envelope import OpenedEnvelope, enclose, placed, travelling
from hushcast_protocol.mqtt.limits import MESSAGE_OVERHEAD
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage, may_be_published
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topics.topic_filters import is_name
from hushcast_protocol.mqtt.topics.ways import OWN, Way
from hushcast_protocol.mqtt.wire.packets import Properties, with_user_properties
from hushcast_protocol.purposes.inner_content import InnerContent
from hushcast_protocol.purposes.message_purposes import unmarked
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import Store

MAX_SEEN = 10_000  # ids of messages that came by one of several ways of an alias; 1 MB
MAX_GRANTED = 1  # QoS: deliveries are at least once, told apart by the message's id


class GatewayNetwork:
    """Implements the broker's `OuterNetwork` through a daemon."""

    def __init__(
        self,
        settings: GatewaySettings,
        ways: NetworkWays,
        env: Environment,
        counters: Counters,
        purposes: Purposes | None = None,
    ) -> None:
        """`purposes` go by the same `ways`."""
        assert settings.daemon.socket is not None
        self._settings = settings
        self._ways = ways
        self._env = env
        self._counters = counters
        self._purposes = purposes
        self.takes, self.names, self.names_of_filter = ways.takes, ways.names, ways.names_of_filter
        self._wanted: dict[str, frozenset[Way]] = {}  # by filter: what is read for it
        self._seen = LatestIds(MAX_SEEN)
        self._link = DaemonLink(Path(settings.daemon.socket))
        self._out = NetworkPublisher(
            self._link,
            self._made,
            self._took,
            self._answered,
            settings.puback == "relay",
            counters,
        )
        self._numbers = NumberedTopics(float(settings.order_wait), env)
        self._backlog = RetainedBacklog()
        self._handing_out = trio.Lock()
        self._in = NetworkReader(self._link, ways.source_of, self._take, env, counters)
        self._refresh = RetainedRefresh(settings.refresh_retained, self._send_again, env)
        self._seal = NetworkSeal(ways, purposes, counters, env.now)
        self._withdrawing = None if purposes is None else WithdrawalSender(purposes, self.publish)
        self._updates = None if purposes is None else ReservationUpdates(purposes, ways, self.publish)
        self._state: BrokerState | None = None

    @property
    def is_there(self) -> bool:
        """Whether the daemon has answered."""
        return self._link.is_there

    @property
    def topics_read(self) -> int:
        """Topics of the network that clients are subscribed to, or were lately."""
        return self._in.count

    @property
    def held(self) -> int:
        """Messages that came and wait for one before them."""
        return self._numbers.held

    def replace_keys(self, keyed: Mapping[str, PurposeKeyring]) -> None:
        """Seal and open by other keys, by alias.

        What was opened by a grant that is gone is not handed out any more.
        """
        self._ways.keyed |= keyed
        for wanted, before in self._wanted.items():
            ways = frozenset(
                way
                for way in self._ways.readable(wanted)
                if way in before or self._in.has_room_for(way, None)
            )
            more = frozenset(way for way in ways - before if self._in.want(way, None))
            for way in before - ways:
                self._in.release(way)
            self._wanted[wanted] = ways & before | more
        self._in.look_again()
        self._out.look_again()

    async def run(self, state: BrokerState, store: Store) -> None:
        """Carry messages out and in until cancelled."""
        self._state = state
        await self._numbers.load(store, state.broker.ledger)
        left = await self._backlog.load(store, state.broker.ledger)
        async with trio.open_nursery() as nursery:
            await nursery.start(self._refresh.run, state, store)  # before anything comes or goes
            for topic in left:
                self._send_again(state.broker.retained_at(topic) or MqttMessage(topic, b"", 1, True), True)
            nursery.start_soon(self._go_on)
            nursery.start_soon(self._link.run)
            nursery.start_soon(self._out.run)
            nursery.start_soon(self._in.run, store)
            if self._purposes is not None and self._withdrawing is not None and self._updates is not None:
                nursery.start_soon(self._withdrawing.run)
                nursery.start_soon(self._updates.run, state, store)
                nursery.start_soon(self._follow, self._purposes)

    async def _follow(self, purposes: Purposes) -> None:
        """Make anew what waits for the daemon whenever it may be used for something else."""
        while True:
            await purposes.changed.wait()
            self._out.look_again()

    def is_local_too(self, topic: str) -> bool:
        """Tell whether a map has it: devices of a house go on while the daemon is away or its outbox full."""
        return not topic.startswith(OWN)

    def topics(self, topic: str) -> tuple[str, ...]:
        """Return all topics here of what is published to one that travels."""
        found = self._ways.of_topic(topic)
        return () if found is None else self._ways.topics(*found)

    def publish(self, publication: NetworkPublication) -> int | None:
        """Take over a message; return why it is refused, `None` where it is on its way."""
        message, way = publication.message, self._ways.way_of(publication.message.topic)
        if way is None:
            return Reason.TOPIC_NAME_INVALID
        if message.retain and publication.is_spread:
            self._refresh.note(message.topic, bool(message.payload))
        if publication.is_will:  # a random while later it travels, so that a client's end does not show
            publication.delay = self._env.uniform(0.0, float(self._settings.will_jitter))
            publication.lapses = True
        properties = _unmarked(message.properties_for((), self._env.now()))
        properties = travelling(properties, self._settings.properties)
        try:
            one = OpenedEnvelope(message.payload, way.path, message.retain, properties, message.qos)
            publication.content = enclose(one, always=way.has_places)
        except PacketError as error:
            return error.reason
        made = self._made(publication)
        if isinstance(made, Reason):
            return made
        if len(made.payload) > MAX_PAYLOAD:  # 0x95, for what is too large, has no place in a PUBACK
            return Reason.IMPLEMENTATION_SPECIFIC_ERROR
        publication.token = publication.token or new_token()
        publication.lane = way.topics[0]
        publication.retained_for = way.topics[0] if message.retain else ""
        stored = trio.Event()
        refused = self._out.put(publication, stored)
        # What is of QoS 1 or 2 its client sends again, in order.
        is_alone = publication.is_owed or publication.is_will or (publication.is_spread and not message.qos)
        if refused is None and message.retain and is_alone:
            publication.is_owed = True
            self._backlog.note(message.topic)
        if publication.is_owed and self._state is not None:
            ledger = self._state.broker.ledger
            ledger.once_stored(ledger.durable, stored.set)
            self._state.changed()
        else:
            stored.set()
        return refused

    def grants(self, user: str, wanted: str, qos: int) -> int:
        """Return the QoS granted to a filter, or why it is refused."""
        ways = self._ways.of_filter(wanted)
        if isinstance(ways, Reason):
            return ways
        if any(self._ways.source_of(way) is None for way in ways):
            return Reason.TOPIC_FILTER_INVALID
        if not all(self._in.has_room_for(way, user) for way in ways):
            return Reason.QUOTA_EXCEEDED
        return min(qos, MAX_GRANTED) if ways or wanted.startswith(OWN) else qos

    def wanted(self, user: str, wanted: str) -> None:
        """Read the topics of a filter that somebody has now."""
        self._wanted[wanted] = frozenset(
            way for way in self._ways.readable(wanted) if self._in.want(way, user)
        )

    def unwanted(self, wanted: str) -> None:
        """Read them no longer than for a while."""
        for way in self._wanted.pop(wanted):
            self._in.release(way)

    def _made(self, publication: NetworkPublication) -> TaggedPayload | Reason:
        """Return what goes now, for what the message may be used for now."""
        way = self._ways.way_of(publication.message.topic)
        if way is None:
            return Reason.TOPIC_NAME_INVALID  # its alias is not configured any more
        place = self._numbers.next(way.topics[0]) if way.has_places else None
        return self._seal.seal(publication, way, placed(publication.content, place))

    def _took(self, publication: NetworkPublication, is_certain: bool) -> None:
        """Have the next message of its topic get the next number."""
        way = self._ways.way_of(publication.message.topic)
        if way is not None and way.has_places and not isinstance(publication, WithdrawalMessage):
            self._numbers.took(way.topics[0], is_certain)

    def _answered(self, publication: NetworkPublication, reason: int) -> None:
        """Tell the broker what became of a message, and that there is something to be kept."""
        message = publication.message
        if publication.is_owed:
            self._backlog.done(message.topic)
        if isinstance(publication, WithdrawalMessage) and self._withdrawing is not None:
            self._withdrawing.answered(publication, reason)
        if self._updates is not None:
            self._updates.answered(publication, reason)
        if (
            message.retain
            and not (reason or publication.is_spread)
            and (publication.link is not None or publication.deletes_here)
        ):
            self._refresh.note(message.topic, bool(message.payload))  # it is retained here with the answer
        assert self._state is not None, "nothing goes out before it runs"
        self._state.broker.answered(publication, reason, self._env.now())
        self._state.changed()

    def _send_again(self, message: MqttMessage, is_owed: bool = False) -> None:
        publication = NetworkPublication(message, None)
        publication.is_owed = is_owed
        publication.lapses = True
        self.publish(publication)

    async def _take(self, way: Way, message: hushcast.Message, stored: Callable[[], None]) -> None:
        """Give a message that came to the clients here, in its turn; they have what was published here."""
        arrived = self._seal.open(way, message.payload)
        if isinstance(arrived, InnerContent):
            self._withdraw(arrived, stored)
            return
        if arrived is None:
            self._counters.add("network_not_opened")
            stored()
            return
        enclosed = arrived.envelope
        topic = self._ways.topics(way, enclosed.path)[0]
        place = None if way.is_open else enclosed.place
        if place is None:
            await self._out.settled(message.payload)
        is_own = place is not None and self._numbers.is_own(topic, place)
        is_ours = self._out.is_ours(message.id) if place is None else is_own
        if is_ours and (place is None or self._numbers.is_known(topic, place)):
            stored()
            return
        if self._has_come(way, message.id):
            stored()
            return
        # Of an alias with keys a gateway gets what it may open: numbers that lack are others'.
        waits = self._settings.order_wait > 0 and self._ways.keys_of(way) is None
        hand_out = partial(self._hand_out, way, arrived, stored, waits)
        if place is None or is_own:
            hand_out(False)
            return
        stream, size = stream_of(way.name, topic, place.source), len(message.payload) + MESSAGE_OVERHEAD
        async with self._handing_out:
            await self._release(self._numbers.came(stream, place, size, hand_out, waits))

    async def _go_on(self) -> None:
        """Go on without what lacks, once it was waited for."""
        while True:
            await self._numbers.until_due()
            async with self._handing_out:
                await self._release(self._numbers.due())

    async def _release(self, released: list[ReleasedArrival[HandOut]]) -> None:
        """Hand out, with a turn for everybody else between two messages."""
        for number, one in enumerate(released):
            if number:
                await trio.lowlevel.checkpoint()
            if not one.is_late and self._state is not None:
                self._numbers.note(one, self._state.broker.ledger)
            one.item(one.is_late)

    def _hand_out(
        self, way: Way, arrived: ArrivedMessage, stored: Callable[[], None], waits: bool, is_late: bool
    ) -> None:
        """Give a message to the clients here, but for one that is late where others wait for such."""
        enclosed = arrived.envelope
        topics = [
            topic
            for topic in self._ways.topics(way, enclosed.path)
            if is_name(topic) and may_be_published(topic)
        ]
        if is_late:
            self._counters.add("network_late")
        is_old = is_late and waits
        if self._purposes is not None and self._purposes.withdrawals.is_withdrawn(enclosed.properties):
            is_old = True  # what withdrew it came before
        if is_old or not topics or self._state is None:
            stored()
            return
        broker, now = self._state.broker, self._env.now()
        before = broker.ledger.made
        if arrived.carried is not None and (self._purposes is None or arrived.carried.is_update):
            if self._purposes is None:
                self._counters.add("network_not_opened")
            for topic in [] if is_late else topics:
                take_carried(broker, topic, enclosed, arrived.carried, self._purposes is not None, now)
            broker.ledger.once_stored(before, stored)
            self._state.changed()
            return
        retain = enclosed.retain and not is_late
        if retain:
            self._out.lapse(topics[0])
        qos = min(enclosed.qos, MAX_GRANTED)
        for topic in topics:
            if retain:
                self._refresh.note(topic, False)
            broker.arrived(topic, enclosed.payload, qos, retain, enclosed.properties, now)
        broker.ledger.once_stored(before, stored)
        self._state.changed()

    def _withdraw(self, withdrawal: InnerContent, stored: Callable[[], None]) -> None:
        """Keep from everybody what its publisher withdrew, and delete it soon."""
        if self._purposes is None or self._state is None:
            stored()
            return
        self._counters.add("network_withdrawals")
        before = self._state.broker.ledger.made
        self._purposes.withdrawals.take(withdrawal.withdrawn_by)
        self._state.broker.ledger.once_stored(before, stored)
        self._state.changed()

    def _has_come(self, way: Way, message_id: str) -> bool:
        """Tell whether a message came by another subscription to the same alias, and remember it."""
        if way.is_open or (way.name not in self._ways.labels and way.name not in self._ways.keyed):
            return False
        is_old = message_id in self._seen
        self._seen.add(message_id)
        return is_old


def _unmarked(properties: Properties) -> Properties:
    """Return properties as they travel: the digest of what withdraws a message stands inside the seal."""
    return with_user_properties(properties, unmarked(properties.get("user_property", ())))
