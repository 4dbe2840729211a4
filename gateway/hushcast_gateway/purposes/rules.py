"""The gateway's answers to its broker (`UsageRules`): which subscription may have which message.

An error in here gives nobody anything: what cannot be decided is not delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from hushcast_gateway.counters import PURPOSE_COUNTERS
from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.purposes import commands, suspension_notices
from hushcast_gateway.purposes.audit_log import named_in, refusal
from hushcast_gateway.purposes.claims import Claims
from hushcast_gateway.purposes.command_execution import CommandExecution, CommandRefusal
from hushcast_gateway.purposes.purpose_state import PurposeState, configured
from hushcast_gateway.purposes.readers import Readers
from hushcast_gateway.purposes.records import AuditRecord, Presubscription, What
from hushcast_gateway.purposes.registrations import Registrations
from hushcast_gateway.purposes.subscribe_requests import SubscribeRequests
from hushcast_gateway.purposes.suspensions import STEPS_AT_ONCE, Suspensions
from hushcast_gateway.purposes.withdrawals import PurposeWithdrawals
from hushcast_gateway.sections.purposes_section import CONFIGURATION, PurposesOfUser, PurposesSection
from hushcast_protocol.base.budget import Budget
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.interfaces import ResolvedFilter
from hushcast_protocol.mqtt.mqtt_broker import MqttBroker
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import AddedProperty, Permissions
from hushcast_protocol.mqtt.topics.topic_filters import matches
from hushcast_protocol.mqtt.wire.packets import Connect, Properties, Publish
from hushcast_protocol.purposes.message_judge import MessageJudge
from hushcast_protocol.purposes.message_purposes import UnreadablePurposes, is_apart
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log
from hushcast_runtime.storage.store import Store

MAX_TOLD = 100  # topics of one look of which the audit log tells that something was withdrawn
MANY = (
    16  # subscriptions that turn at once, or names of a filter, from which on all topics are looked at anew
)


class Purposes:
    """All that the gateway knows of purposes."""

    def __init__(
        self,
        section: PurposesSection,
        users: Mapping[str, PurposesOfUser],
        vocabulary: Vocabulary,
        now: Callable[[], float],
        ways: NetworkWays | None = None,
    ) -> None:
        """`now` is Unix time; `ways` tell the names of messages, and by which keys they travel.

        Raises `UsageError` where the configuration names purposes there are not.
        """
        self._section = section
        self.vocabulary = vocabulary
        self._now = now
        self._ways = ways or NetworkWays()
        self.kept = PurposeState(
            section.store, configured(section, vocabulary), {CONFIGURATION, *users}, self._ways
        )
        self.judge = MessageJudge(self.kept.reservations, vocabulary, section.strict)
        """What a message may be used for."""
        self._readers = Readers(self.kept, Claims(users, vocabulary))
        self._suspensions = Suspensions(self.kept.reservations, self._readers, section.mode, section.strict)
        self.withdrawals = PurposeWithdrawals()
        self._execution = CommandExecution(
            section, vocabulary, self.kept, self._changed, self._presubscribed, self._withdraw
        )
        self._registrations = Registrations()
        self._broker: MqttBroker | None = None
        self._requests = SubscribeRequests(self._readers, self._suspensions, self._ways, self._refuse)
        self.remembers = section.mode == "subscribe" or section.store == "cached"
        self.changed = ChangeSignal()
        """Set, and another one in its place, after each change of what may be used for what."""
        self.counters = Counters(PURPOSE_COUNTERS)

    @property
    def reserved(self) -> int:
        """How many reservations there are."""
        return len(self.kept.reservations)

    @property
    def resting(self) -> int:
        """How many subscriptions get nothing as a whole."""
        return len(self._suspensions)

    async def load(self, store: Store) -> None:
        """Take up what an earlier run left; errors as `PurposeState.load`."""
        await self.kept.load(store)
        await self.withdrawals.load(store)

    def attach(self, broker: MqttBroker, randomness: Randomness) -> None:
        """Work with a broker that was restored."""
        self._broker = broker
        self.kept.attach(broker.ledger)
        self.withdrawals.attach(broker.ledger, randomness)

    def replace(
        self, section: PurposesSection, users: Mapping[str, PurposesOfUser], vocabulary: Vocabulary
    ) -> None:
        """Go by another configuration from now on, but for its mode and its store.

        Raises `UsageError` as `configured`, and then changes nothing.
        """
        self.kept.configure(configured(section, vocabulary))
        self.kept.know({CONFIGURATION, *users})
        self._section = replace(section, mode=self._section.mode, store=self._section.store)
        self.vocabulary = vocabulary
        self._execution.replace(self._section, vocabulary)
        self._suspensions.strict = section.strict
        self._readers.claims = Claims(users, vocabulary)
        self._readers.forget_purposes(None)
        self.judge.go_by(vocabulary, section.strict)
        self._changed(None)

    def connected(self, permissions: Permissions, connect: Connect) -> None:
        """Note the purpose that a CONNECT names for subscriptions that name none."""
        self._requests.connected(permissions, connect)

    def tick(self) -> Iterator[None]:
        """Tell clients whose subscriptions rest since changes, or go on; in pieces, once a second."""
        assert self._broker is not None
        if self.withdrawals.is_due(self._now()):
            found: Counter[str] = Counter()
            is_withdrawn = self.withdrawals.is_withdrawn
            yield from self._broker.withdraw(lambda message: is_withdrawn(message.properties), found)
            for topic in islice(found, MAX_TOLD):
                self._audit(AuditRecord(0.0, "", "", "withdrawn", topic))
        turned = self._suspensions.settle()
        if len(turned) > MANY:
            self._broker.rules_changed(None)
        for granted in turned:
            session = self._readers.session(granted)
            if session is None:
                continue
            if len(turned) <= MANY:
                self._broker.rules_changed(granted.wanted)
            purpose = self._purpose(session, granted)
            suspension_notices.tell(
                session, self._section.paused, granted, purpose, granted in self._suspensions
            )

    # What the broker asks.

    def is_command(self, topic: str) -> bool:
        """Tell whether a topic speaks of purposes."""
        return commands.is_command(topic)

    def has_terms(self, properties: Properties) -> bool:
        """Tell whether a message is decided by itself: by its own terms, or since it can be withdrawn."""
        return is_apart(properties.get("user_property", ()))

    def owned(self, user: str, topic: str, properties: Properties) -> Properties:
        """Return the properties of a message that travels sealed, with what withdraws it."""
        name = self._ways.sealed_as(topic) if user else None
        return properties if name is None else self.withdrawals.owned(user, name, properties)

    def filter_of(self, wanted: str) -> str:
        """Return the filter without `!AP/` and purpose."""
        return commands.filter_of(wanted)

    def meant(
        self, permissions: Permissions, client_id: str, wanted: str, given: Properties
    ) -> ResolvedFilter | int:
        """Return a subscription's filter and purpose, or that they cannot be read."""
        return self._requests.meant(permissions, client_id, wanted, given)

    def budget(self) -> Budget:
        """Return what deciding about the filters of one SUBSCRIBE may take."""
        return Budget(STEPS_AT_ONCE)

    def refuses(self, permissions: Permissions, client_id: str, meant: ResolvedFilter, budget: Budget) -> int:
        """Return why a subscription is not made that the user may make, 0 if it is."""
        return self._requests.refuses(permissions.user, client_id, meant, budget)

    def published(self, permissions: Permissions, client_id: str, topic: str, packet: Publish) -> int | None:
        """Carry out a command, or see whether a message's own terms can be read."""
        user = permissions.user
        if not commands.is_command(topic):
            try:
                self.judge.check(user, topic, packet.properties.get("user_property", ()))
            except (UnreadablePurposes, UsageError) as error:
                self._refuse(user, client_id, "message", topic, str(error))
                return Reason.IMPLEMENTATION_SPECIFIC_ERROR
            return None
        self.counters.add("purpose_commands")
        try:
            command = commands.read_command(topic, packet.payload, packet.properties)
        except UnreadablePurposes as error:
            self._refuse(user, client_id, "control", "", str(error))
            return Reason.TOPIC_NAME_INVALID
        here = self._readers.session_of(user, client_id)
        done: AuditRecord | None
        try:
            if isinstance(command, commands.RegisterCommand):
                done = self._registrations.register(command, permissions, client_id, self.vocabulary)
            else:
                done = self._execution.do(command, permissions, client_id, self._readers.claims, here)
        except CommandRefusal as refused:
            what, wanted, *purposes = named_in(command)
            self._refuse(user, client_id, what, wanted, refused.why, *purposes)
            return refused.reason
        if done is not None:
            self._audit(done)
        return Reason.SUCCESS

    def added(self, permissions: Permissions) -> AddedProperty | None:
        """Return what a client has registered for its messages, `None` for nothing."""
        return self._registrations.added(permissions)

    def may_have(
        self, session: MqttSession, granted: GrantedSubscription | None, message: MqttMessage
    ) -> bool:
        """Tell whether a message may be handed out now; an error is a no."""
        topic = message.topic
        if topic.startswith("$"):
            return True
        try:
            is_allowed = self._may_have(session, granted, topic, message.properties)
        except Exception as error:
            if not self.counters["purposes_errors"]:
                log.error("purposes cannot be decided: nothing is delivered", error=type(error).__name__)
            self.counters.add("purposes_errors")
            return False
        self.counters.add("purposes_allowed" if is_allowed else "purposes_refused")
        return is_allowed

    def subscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        """Hear of a subscription; one for the topic that tells is told at once."""
        self._readers.add(session, granted)
        purpose = self._purpose(session, granted)
        if self._suspensions.add(granted, purpose) and self._broker is not None:
            suspension_notices.tell(session, self._section.paused, granted, purpose, True)
        if matches(granted.wanted, suspension_notices.TOPIC) and self._section.paused == "topic":
            for one in session.filters.values():
                if one in self._suspensions:
                    suspension_notices.tell(session, "topic", one, self._purpose(session, one), True)

    def unsubscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        """Hear that a subscription is no more."""
        self._readers.remove(granted)
        self._suspensions.remove(granted)

    def drop(self, owner: str, filters: Sequence[str]) -> None:
        """Take away what an owner reserved for some filters, as whoever runs the gateway wishes."""
        for one in filters:
            if self.kept.release(owner, one):
                self._audit(AuditRecord(0.0, owner, "", "drop", one))
        self._changed(None)

    def _may_have(
        self, session: MqttSession, granted: GrantedSubscription | None, topic: str, properties: Properties
    ) -> bool:
        if granted is not None and self._suspensions.holds_back(granted):
            return False
        if self.withdrawals.is_withdrawn(properties):
            return False
        is_decided = (
            granted is not None
            and not self._suspensions.is_by_message
            and not self._suspensions.is_open(granted)
        )
        given = properties.get("user_property", ())
        opened = self._ways.granted(topic) if given else None
        return self.judge.may_be_used(topic, given, self._purpose(session, granted), opened, is_decided)

    def _purpose(self, session: MqttSession, granted: GrantedSubscription | None) -> Purpose | None:
        return self._readers.purpose(session, granted)

    # What changes.

    def _changed(self, wanted: str | None) -> None:
        """Decide anew what a change in a filter reaches, all for `None`."""
        self.judge.forget()
        images = None if wanted is None else self._ways.images(wanted)
        if self._broker is not None:  # a reload may come before there is one
            for image in (None,) if images is None or len(images) > MANY else images:
                self._broker.rules_changed(image)
        self._suspensions.changed(images)
        self.changed.tell()

    def _withdraw(self, user: str, topic: str) -> bool:
        name = self._ways.sealed_as(topic)
        if name is not None:
            self.withdrawals.make(user, name)
            self._changed(topic)
        return name is not None

    def _presubscribed(self, made: Presubscription | None) -> None:
        self._readers.forget_purposes(None if made is None else (made.user, made.client_id))
        self._changed(None if made is None else made.filter)

    # What is noted.

    def _refuse(
        self,
        user: str,
        client_id: str,
        what: What,
        wanted: str,
        why: str,
        aip: Sequence[str] = (),
        pip: Sequence[str] = (),
    ) -> None:
        self.counters.add("purpose_commands_refused")
        self._audit(refusal(user, client_id, what, wanted, aip, pip, why))

    def _audit(self, entry: AuditRecord) -> None:
        self.kept.audit(replace(entry, at=self._now()))
