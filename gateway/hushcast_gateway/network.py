"""The network as the broker sees it: topics that travel, by their ways, out and in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from types import MappingProxyType

import trio
from msgspec.structs import replace

import hushcast
from hushcast_gateway.broker_state import BrokerState
from hushcast_gateway.daemon_link import DaemonLink
from hushcast_gateway.latest_ids import LatestIds
from hushcast_gateway.network_publisher import NetworkPublisher, OutgoingMessage, TaggedPayload
from hushcast_gateway.network_reader import NetworkReader, NetworkSubscription
from hushcast_gateway.purposes.commands import opened_for
from hushcast_gateway.purposes.rules import Purposes
from hushcast_gateway.purposes.withdrawals import UnsentWithdrawals, digest_in, marked, unmarked
from hushcast_gateway.retained_refresh import RetainedRefresh
from hushcast_gateway.settings import GatewaySettings
from hushcast_gateway.withdrawal_sender import WithdrawalSender
from hushcast_protocol.base.errors import PeerError, UsageError
from hushcast_protocol.content.attributes import Label, parse_label
from hushcast_protocol.content.messages import MAX_PAYLOAD
from hushcast_protocol.content.predicates import Equals, Predicate, write_where
from hushcast_protocol.content.topics import LINK_SCHEME
from hushcast_protocol.mqtt.envelope import OpenedEnvelope, disclose, enclose, travelling
from hushcast_protocol.mqtt.interfaces import DoneCallback, NetworkPublication
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage, may_be_published
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topic_filters import is_name
from hushcast_protocol.mqtt.ways import OWN, Way, Ways
from hushcast_protocol.purposes.inner_content import InnerContent
from hushcast_protocol.purposes.purpose_keyring import PurposeKeyring
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.purpose_problems import PurposeError
from hushcast_protocol.purposes.sealed_messages import is_sealed
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import Store

MAX_SEEN = 10_000  # ids of messages that came by one of several ways of an alias; 1 MB
MAX_GRANTED = 1  # QoS: deliveries are at least once, told apart by the message's id


class GatewayNetwork:
    """Implements the broker's `Beyond` through a daemon."""

    def __init__(
        self,
        settings: GatewaySettings,
        links: Mapping[str, str],
        env: Environment,
        counters: Counters,
        purposes: Purposes | None = None,
        keyed: Mapping[str, PurposeKeyring] = MappingProxyType({}),
    ) -> None:
        """`links` are the aliases' by name, `keyed` the keys of those that have some."""
        assert settings.daemon.socket is not None
        self._keyed = dict(keyed)
        self._wanted: dict[str, frozenset[Way]] = {}  # by filter: what is read for it
        self._counters = counters
        self._settings = settings
        self._links = links
        self._purposes = purposes
        self._uses = {one.name: one.purpose or "" for one in settings.gateway.alias}
        self._env = env
        self._labels = {one.name: one.label for one in settings.gateway.alias if one.label is not None}
        maps = {one.from_: one.to for one in settings.gateway.map}
        self._ways = Ways(links, maps, self._labels, _is_label)
        self.names, self.names_of_filter = self._ways.names, self._ways.names_of_filter
        self._seen = LatestIds(MAX_SEEN)
        self._link = DaemonLink(Path(settings.daemon.socket))
        self._out = NetworkPublisher(self._link, settings.puback == "relay", counters)
        if purposes is not None:
            purposes.go_by(self._ways)
            purposes.changes.append(self._out.look_again)
            purposes.granted = self._granted
            purposes.sealed_as = self._sealed_as
            purposes.asked.may_open = self._may_open
        self._in = NetworkReader(self._link, self._source_of, self._take, env, counters)
        self._refreshing = RetainedRefresh(settings.refresh_retained, self._send_again, env)
        self._state: BrokerState | None = None

    @property
    def keyed(self) -> Mapping[str, PurposeKeyring]:
        """The keys of aliases that have some."""
        return self._keyed

    @property
    def is_there(self) -> bool:
        """Whether the daemon has answered."""
        return self._link.is_there

    @property
    def topics_read(self) -> int:
        """Topics of the network that clients are subscribed to, or were lately."""
        return self._in.count

    def replace_keys(self, keyed: Mapping[str, PurposeKeyring]) -> None:
        """Seal and open by other keys, by alias.

        What was opened by a grant that is gone is not handed out any more.
        """
        self._keyed |= keyed
        for wanted, before in self._wanted.items():
            ways = frozenset(
                way for way in self._of(wanted) if way in before or self._in.has_room_for(way, None)
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
        async with trio.open_nursery() as nursery:
            await nursery.start(self._refreshing.run, state, store)  # before anything comes or goes
            nursery.start_soon(self._link.run)
            nursery.start_soon(self._out.run)
            nursery.start_soon(self._in.run, store)
            if self._purposes is not None:
                nursery.start_soon(WithdrawalSender(self._purposes, self._tell).run)

    def takes(self, topic: str) -> bool:
        """Tell whether a topic travels, or would if its alias were configured."""
        return self._ways.takes(topic)

    def is_local_too(self, topic: str) -> bool:
        """Tell whether a map has it: devices of a house go on while the daemon is away or its outbox full."""
        return not topic.startswith(OWN)

    def topics(self, topic: str) -> tuple[str, ...]:
        """Return all topics here of what is published to one that travels."""
        found = self._ways.of_topic(topic)
        return () if found is None else self._ways.topics(*found)

    def publish(self, handed: NetworkPublication, done: DoneCallback) -> None:
        """Take over a message of a client."""
        topic, payload, retain = handed.topic, handed.payload, handed.retain
        is_kept = self.is_local_too(topic)
        if retain and is_kept:
            self._refreshing.note(topic, bool(payload))

        def told(reason: int) -> None:
            if retain and not is_kept and not reason:  # it is retained here when this returns
                self._refreshing.note(topic, bool(payload))
            done(reason)

        self._publish(handed, told, 0.0)

    def will(self, handed: NetworkPublication) -> None:
        """Take over a will; a random while later it travels, so that a client's end does not show."""
        delay = self._env.uniform(0.0, float(self._settings.will_jitter))
        self._publish(handed, lambda reason: None, delay, lapses=True)

    def grants(self, user: str, wanted: str, qos: int) -> int:
        """Return the QoS granted to a filter, or why it is refused."""
        ways = self._ways.of_filter(wanted)
        if isinstance(ways, Reason):
            return ways
        if any(self._source_of(way) is None for way in ways):
            return Reason.TOPIC_FILTER_INVALID
        if not all(self._in.has_room_for(way, user) for way in ways):
            return Reason.QUOTA_EXCEEDED
        return min(qos, MAX_GRANTED) if ways or wanted.startswith(OWN) else qos

    def wanted(self, user: str, wanted: str) -> None:
        """Read the topics of a filter that somebody has now."""
        self._wanted[wanted] = frozenset(way for way in self._of(wanted) if self._in.want(way, user))

    def unwanted(self, wanted: str) -> None:
        """Read them no longer than for a while."""
        for way in self._wanted.pop(wanted):
            self._in.release(way)

    def _of(self, wanted: str) -> frozenset[Way]:
        ways = self._ways.of_filter(wanted)
        # A session from disk may have what an earlier configuration granted.
        found = frozenset() if isinstance(ways, Reason) else ways
        return frozenset(way for way in found if self._may_read(way))

    def _publish(
        self, handed: NetworkPublication, done: DoneCallback, delay: float, lapses: bool = False
    ) -> None:
        topic = handed.topic
        enclosed = OpenedEnvelope(handed.payload, "", handed.retain, handed.properties)
        found = self._way_out(topic)
        if found is None:
            done(Reason.TOPIC_NAME_INVALID)
            return
        way, path, source = found
        properties = travelling(unmarked(enclosed.properties), self._settings.properties)
        try:
            content = enclose(OpenedEnvelope(enclosed.payload, path, enclosed.retain, properties))
        except PacketError as error:
            done(error.reason)
            return
        make = partial(self._make, way, topic, enclosed)
        first = make(content)
        if isinstance(first, Reason) or len(first.payload) > MAX_PAYLOAD:
            # 0x95, for what is too large, has no place in a PUBACK.
            done(first if isinstance(first, Reason) else Reason.IMPLEMENTATION_SPECIFIC_ERROR)
            return
        told = self._and_changed(done)
        retained = self._ways.topics(way, path)[0] if enclosed.retain else ""
        attributes = self._attributes(way, path)
        leaving = OutgoingMessage(source.topic, content, told, delay, attributes, make, retained, lapses)
        if handed.token:
            leaving = replaced(leaving, token=handed.token)
        self._out.put(leaving, handed.user)

    def _way_out(self, topic: str) -> tuple[Way, str, NetworkSubscription] | None:
        """Return a topic's way, the path on it and its source, `None` where it does not travel any more."""
        found = self._ways.of_topic(topic)
        source = None if found is None else self._source_of(found[0])
        return None if found is None or source is None else (*found, source)

    def _and_changed(self, done: DoneCallback) -> DoneCallback:
        """Return what tells the outcome, and that there is something to be kept."""

        def told(reason: int) -> None:
            done(reason)
            if self._state is not None:
                self._state.changed()

        return told

    def _attributes(self, way: Way, path: str) -> dict[str, str]:
        """Return what relays route a message with this path by."""
        label = self._ways.label_of(way, path)
        return {self._labels[way.name]: label} if label else {}

    def _tell(self, one: UnsentWithdrawals, done: DoneCallback) -> None:
        """Tell the other gateways what was withdrawn here."""
        found = self._way_out(one.topic)
        if found is None or self._keys_of(found[0]) is None:
            done(Reason.TOPIC_NAME_INVALID)  # its alias is not configured any more
            return
        way, path, source = found

        def make(_: bytes) -> TaggedPayload | Reason:
            return self._sealed(lambda: self._keyed[way.name].withdraw(one.lock, self._env.now()))

        told = self._and_changed(done)
        self._out.put(OutgoingMessage(source.topic, b"", told, 0.0, self._attributes(way, path), make), None)

    def _make(self, way: Way, topic: str, enclosed: OpenedEnvelope, content: bytes) -> TaggedPayload | Reason:
        """Return what goes now: where the alias has keys, sealed for what the message may be used for."""
        keyed, purposes = self._keys_of(way), self._purposes
        if keyed is None:
            use = "" if way.is_open else self._uses.get(way.name, "")
            may_go = purposes is None or purposes.may_leave(topic, enclosed.properties, use)
            return TaggedPayload(content) if may_go else Reason.NOT_AUTHORIZED
        assert purposes is not None, "a configuration with keys has purposes"
        clauses, strict = purposes.clauses(topic, enclosed.properties), purposes.strict
        if clauses is None or purposes.withdrawals.is_withdrawn(enclosed.properties):
            return Reason.NOT_AUTHORIZED
        if enclosed.retain and not enclosed.payload:
            # Gateways that keep a message delete it, also those that may not read the next one any more.
            clauses, strict = frozenset(), False
        digest = digest_in(enclosed.properties)
        return self._sealed(lambda: keyed.seal(content, clauses, strict, self._env.now(), digest))

    def _sealed(self, seal: Callable[[], tuple[bytes, frozenset[str]]]) -> TaggedPayload | Reason:
        try:
            return TaggedPayload(*seal())
        except PeerError:
            self._counters.add("network_not_sealed")
            return Reason.IMPLEMENTATION_SPECIFIC_ERROR

    def _may_read(self, way: Way) -> bool:
        keyed = self._keys_of(way)
        return keyed is None or bool(keyed.granted)

    def _sealed_as(self, topic: str) -> str | None:
        """Return by which of its names a topic travels sealed, `None` where it does not."""
        found = self._ways.of_topic(topic)
        return None if found is None or self._keys_of(found[0]) is None else self._ways.topics(*found)[0]

    def _granted(self, topic: str) -> frozenset[Purpose] | None:
        """Return for which purposes what comes to a topic may be opened, `None` if it needs no keys."""
        found = self._ways.of_topic(topic)
        keyed = None if found is None else self._keys_of(found[0])
        return None if keyed is None else keyed.granted

    def _may_open(self, wanted: str, purpose: Purpose | None) -> bool:
        """Tell whether a filter's messages may open for a purpose; those of a map are of the house, too."""
        ways = self._ways.of_filter(wanted) if wanted.startswith(OWN) else frozenset[Way]()
        if isinstance(ways, Reason):
            return True  # which `grants` refuses
        above = () if purpose is None else ancestors(purpose)
        keyed = [self._keys_of(way) for way in ways]
        return all(one is None or not one.granted.isdisjoint(above) for one in keyed)

    def _keys_of(self, way: Way) -> PurposeKeyring | None:
        return None if way.is_open else self._keyed.get(way.name)

    def _send_again(self, message: MqttMessage) -> None:
        properties = message.properties_for((), self._env.now())
        again = NetworkPublication(message.topic, message.payload, True, properties, None)
        self._publish(again, lambda reason: None, 0.0, lapses=True)

    async def _take(self, way: Way, message: hushcast.Message, stored: Callable[[], None]) -> None:
        """Give a message that came to the clients here; they have what was published here already."""
        await self._out.settled(message.payload)
        enclosed = self._opened(way, message.payload)
        if isinstance(enclosed, InnerContent):
            self._withdraw(enclosed, stored)
            return
        if enclosed is None:
            self._counters.add("network_not_opened")
            stored()
            return
        topics = [
            topic
            for topic in self._ways.topics(way, enclosed.path)
            if is_name(topic) and may_be_published(topic)
        ]
        is_old = self._out.is_ours(message.id) or self._has_come(way, message.id)
        if self._purposes is not None and self._purposes.withdrawals.is_withdrawn(enclosed.properties):
            is_old = True  # what withdrew it came before
        if is_old or not topics or self._state is None:
            stored()
            return
        broker, now = self._state.broker, self._env.now()
        if enclosed.retain:
            self._out.lapse(topics[0])
        before = broker.ledger.made
        for topic in topics:
            if enclosed.retain:
                self._refreshing.note(topic, False)
            broker.arrived(topic, enclosed.payload, MAX_GRANTED, enclosed.retain, enclosed.properties, now)
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

    def _opened(self, way: Way, payload: bytes) -> OpenedEnvelope | InnerContent | None:
        """Return what is in a message, or that it withdraws others.

        `None` where it is sealed and does not open, or ought to be sealed.
        """
        keyed = self._keys_of(way)
        if keyed is None:
            return None if not way.is_open and is_sealed(payload) else disclose(payload)
        try:
            opened, inside = keyed.open(payload)
        except PurposeError:
            return None
        if inside.lock:
            return inside
        enclosed = disclose(inside.content)
        properties = opened_for(marked(enclosed.properties, inside.withdrawn_by), opened)
        return replace(enclosed, properties=properties)

    def _has_come(self, way: Way, message_id: str) -> bool:
        """Tell whether a message came by another subscription to the same alias, and remember it."""
        if way.is_open or (way.name not in self._labels and way.name not in self._keyed):
            return False
        is_old = message_id in self._seen
        self._seen.add(message_id)
        return is_old

    def _source_of(self, way: Way) -> NetworkSubscription | None:
        """Return what a way is in the network; `None` where it is none, or is not configured any more."""
        if way.is_open:
            # A link is a secret and has no place in an MQTT topic.
            return None if way.name.lstrip().startswith(LINK_SCHEME) else NetworkSubscription(way.name, "")
        link, label = self._links.get(way.name), self._labels.get(way.name)
        if link is None or (way.first and label is None):
            return None
        condition = (Equals(Label(label), way.first),) if label is not None and way.first else ()
        keyed = self._keys_of(way)
        return NetworkSubscription(
            link, write_where(Predicate(condition, frozenset() if keyed is None else keyed.tags))
        )


def _is_label(level: str) -> bool:
    try:
        return parse_label(level, "") == level
    except UsageError:
        return False
