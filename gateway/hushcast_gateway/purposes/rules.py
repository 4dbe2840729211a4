"""The gateway's answers to its broker (`seams.Rules`): which subscription may have which message.

An error in here gives nobody anything: what cannot be decided is not delivered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from hushcast_gateway.counters import PURPOSE_COUNTERS
from hushcast_gateway.purposes import commands, suspension_notices
from hushcast_gateway.purposes.audit_log import named_in, refusal
from hushcast_gateway.purposes.claims import Claims
from hushcast_gateway.purposes.command_execution import CommandExecution, CommandRefusal
from hushcast_gateway.purposes.commands import UnreadableCommand
from hushcast_gateway.purposes.purpose_state import PurposeState, configured
from hushcast_gateway.purposes.readers import Readers
from hushcast_gateway.purposes.records import AuditRecord, Presubscription, What
from hushcast_gateway.purposes.registrations import Registrations
from hushcast_gateway.purposes.settings import CONFIGURATION, PurposesOfUser, PurposesSection
from hushcast_gateway.purposes.subscribe_requests import SubscribeRequests
from hushcast_gateway.purposes.suspensions import STEPS_AT_ONCE, Suspensions
from hushcast_gateway.purposes.withdrawals import PurposeWithdrawals
from hushcast_protocol.base.budget import Budget
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.secrets import Randomness
from hushcast_protocol.mqtt.interfaces import AddedProperty, Permissions, ResolvedFilter
from hushcast_protocol.mqtt.mqtt_broker import MqttBroker
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.packets import Connect, Properties, Publish
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topic_filters import matches
from hushcast_protocol.mqtt.ways import Ways
from hushcast_protocol.purposes.clauses import Clause, of_message
from hushcast_protocol.purposes.purpose_decision import decide, refuses
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.vocabulary import Vocabulary
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
    ) -> None:
        """`now` is Unix time. Raises `UsageError` where the configuration names purposes there are not."""
        self._section = section
        self.vocabulary = vocabulary
        self._now = now
        self.kept = PurposeState(section.store, configured(section, vocabulary), {CONFIGURATION, *users})
        self._readers = Readers(self.kept, Claims(users, vocabulary))
        self._resting = Suspensions(self.kept.reservations, self._readers, section.mode, section.strict)
        self.withdrawals = PurposeWithdrawals()
        self._doing = CommandExecution(
            section, vocabulary, self.kept, self._changed, self._presubscribed, self._withdraw
        )
        self._registered = Registrations()
        self._broker: MqttBroker | None = None
        self.asked = SubscribeRequests(self._readers, self._resting, self._refuse)
        self._last_terms: tuple[Properties, Clause | None] | None = None
        self._last_decided: tuple[str, Properties, dict[Purpose | None, bool]] | None = None
        self._by_message = section.mode != "subscribe"
        self.remembers = section.mode == "subscribe" or section.store == "cached"
        self.changes: list[Callable[[], None]] = []
        """Called after each change of what may be used for what."""
        self.granted: Callable[[str], frozenset[Purpose] | None] = lambda topic: None
        """Tells for which purposes what comes sealed to a topic may be opened now; `None` where none is."""
        self.sealed_as: Callable[[str], str | None] = lambda topic: None
        """Tells by which one name a topic travels sealed; `None` where it does not."""
        self.counters = Counters(PURPOSE_COUNTERS)

    @property
    def reserved(self) -> int:
        """How many reservations there are."""
        return len(self.kept.reservations)

    @property
    def resting(self) -> int:
        """How many subscriptions get nothing as a whole."""
        return len(self._resting)

    async def load(self, store: Store) -> None:
        """Take up what an earlier run left; errors as `PurposeState.load`."""
        await self.kept.load(store)
        await self.withdrawals.load(store)

    def go_by(self, ways: Ways) -> None:
        """Know topics by all names that they have with these ways; before anything else."""
        self.kept.go_by(ways)

    def attach(self, broker: MqttBroker, randomness: Randomness) -> None:
        """Work with a broker that was restored."""
        self._broker = broker
        self.kept.attach(broker.ledger)
        self.withdrawals.attach(broker.ledger, randomness)

    def replace(
        self, section: PurposesSection, users: Mapping[str, PurposesOfUser], vocabulary: Vocabulary
    ) -> None:
        """Go by another configuration from now on, but for its mode and its store.

        Raises `UsageError` as `check`, and then changes nothing.
        """
        self.kept.configure(configured(section, vocabulary))
        self.kept.know({CONFIGURATION, *users})
        self._section = replace(section, mode=self._section.mode, store=self._section.store)
        self.vocabulary = vocabulary
        self._doing.replace(self._section, vocabulary)
        self._resting.strict = section.strict
        self._readers.claims = Claims(users, vocabulary)
        self._readers.forget_purposes(None)
        self._last_terms = None
        self._changed(None)

    def check(self, section: PurposesSection, vocabulary: Vocabulary) -> None:
        """Raise `UsageError` where a configuration names purposes there are not."""
        configured(section, vocabulary)

    def connected(self, permissions: Permissions, connect: Connect) -> None:
        """Note the purpose that a CONNECT names for subscriptions that name none."""
        self.asked.connected(permissions, connect)

    def tick(self) -> Iterator[None]:
        """Tell clients whose subscriptions rest since changes, or go on; in pieces, once a second."""
        assert self._broker is not None
        if self.withdrawals.is_due(self._now()):
            found: Counter[str] = Counter()
            is_withdrawn = self.withdrawals.is_withdrawn
            yield from self._broker.withdraw(lambda message: is_withdrawn(message.properties), found)
            for topic in islice(found, MAX_TOLD):
                self._audit(AuditRecord(0.0, "", "", "withdrawn", topic))
        turned = self._resting.settle()
        if len(turned) > MANY:
            self._broker.rules_changed(None)
        for granted in turned:
            session = self._readers.session(granted)
            if session is None:
                continue
            if len(turned) <= MANY:
                self._broker.rules_changed(granted.wanted)
            purpose = self._purpose(session, granted)
            suspension_notices.tell(session, self._section.paused, granted, purpose, granted in self._resting)

    # What the broker asks.

    def is_command(self, topic: str) -> bool:
        """Tell whether a topic speaks of purposes."""
        return commands.is_command(topic)

    def has_terms(self, properties: Properties) -> bool:
        """Tell whether a message is decided by itself: by its own terms, or since it can be withdrawn."""
        return commands.is_apart(properties)

    def owned(self, user: str, topic: str, properties: Properties) -> Properties:
        """Return the properties of a message that travels sealed, with what withdraws it."""
        name = self.sealed_as(topic) if user else None
        return properties if name is None else self.withdrawals.owned(user, name, properties)

    def filter_of(self, wanted: str) -> str:
        """Return the filter without `!AP/` and purpose."""
        return commands.filter_of(wanted)

    def meant(
        self, permissions: Permissions, client_id: str, wanted: str, given: Properties
    ) -> ResolvedFilter | int:
        """Return a subscription's filter and purpose, or that they cannot be read."""
        return self.asked.meant(permissions, client_id, wanted, given)

    def budget(self) -> Budget:
        """Return what deciding about the filters of one SUBSCRIBE may take."""
        return Budget(STEPS_AT_ONCE)

    def refuses(self, permissions: Permissions, client_id: str, meant: ResolvedFilter, budget: Budget) -> int:
        """Return why a subscription is not made that the user may make, 0 if it is."""
        return self.asked.refuses(permissions.user, client_id, meant, budget)

    def published(self, permissions: Permissions, client_id: str, topic: str, packet: Publish) -> int | None:
        """Carry out a command, or see whether a message's own terms can be read."""
        user = permissions.user
        if not commands.is_command(topic):
            return self._of_message(user, client_id, topic, packet.properties)
        self.counters.add("purpose_commands")
        try:
            command = commands.read_command(topic, packet.payload, packet.properties)
        except UnreadableCommand as error:
            self._refuse(user, client_id, "control", "", str(error))
            return Reason.TOPIC_NAME_INVALID
        here = self._readers.session_of(user, client_id)
        done: AuditRecord | None
        try:
            if isinstance(command, commands.RegisterCommand):
                done = self._registered.register(command, permissions, client_id, self.vocabulary)
            else:
                done = self._doing.do(command, permissions, client_id, self._readers.claims, here)
        except CommandRefusal as refused:
            what, wanted, *purposes = named_in(command)
            self._refuse(user, client_id, what, wanted, refused.why, *purposes)
            return refused.reason
        if done is not None:
            self._audit(done)
        return Reason.SUCCESS

    def added(self, permissions: Permissions) -> AddedProperty:
        """Return what a client has registered for its messages."""
        return self._registered.added(permissions)

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

    @property
    def strict(self) -> bool:
        """Whether what nobody reserved is given to nobody."""
        return self._section.strict

    def clauses(self, topic: str, properties: Properties) -> frozenset[Clause] | None:
        """Return all clauses that reach a message; `None` if its own mean nothing.

        They are the same by whichever of its names it is asked for.
        """
        try:
            own = self._terms(topic, properties)
        except (UnreadableCommand, UsageError):
            return None
        return frozenset([*self.kept.reservations.covering(topic), *([] if own is None else [own])])

    def may_leave(self, topic: str, properties: Properties, use: str) -> bool:
        """Tell whether a message may go to readers who use it so; for anything if empty."""
        clauses = self.clauses(topic, properties)
        try:
            purpose = Purpose(use) if use else None
            return clauses is not None and decide(clauses, purpose, self._section.strict).allowed
        except UsageError:
            return False

    def subscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        """Hear of a subscription; one for the topic that tells is told at once."""
        self._readers.add(session, granted)
        purpose = self._purpose(session, granted)
        if self._resting.add(granted, purpose) and self._broker is not None:
            suspension_notices.tell(session, self._section.paused, granted, purpose, True)
        if matches(granted.wanted, suspension_notices.TOPIC) and self._section.paused == "topic":
            resting = [
                (one, self._purpose(session, one)) for one in session.filters.values() if one in self._resting
            ]
            suspension_notices.tell_all(session, resting)

    def unsubscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        """Hear that a subscription is no more."""
        self._readers.remove(granted)
        self._resting.remove(granted)

    def drop(self, owner: str, filters: Sequence[str]) -> None:
        """Take away what an owner reserved for some filters, as whoever runs the gateway wishes."""
        for one in filters:
            if self.kept.release(owner, one):
                self._audit(AuditRecord(0.0, owner, "", "drop", one))
        self._changed(None)

    # How it is decided.

    def _may_have(
        self, session: MqttSession, granted: GrantedSubscription | None, topic: str, properties: Properties
    ) -> bool:
        if granted is not None and self._resting.holds_back(granted):
            return False
        if self.withdrawals.is_withdrawn(properties):
            return False
        if "user_property" in properties and not commands.is_opened_for(
            properties, self._purpose(session, granted), self.granted(topic)
        ):
            return False
        try:
            terms = self._terms(topic, properties)
        except (UnreadableCommand, UsageError):
            return False
        if (
            terms is None
            and not self._by_message
            and granted is not None
            and not self._resting.is_open(granted)
        ):
            return True
        return self._is_allowed(topic, properties, terms, self._purpose(session, granted))

    def _is_allowed(
        self, topic: str, properties: Properties, terms: Clause | None, purpose: Purpose | None
    ) -> bool:
        """Decide by the clauses that reach a message, once for all subscriptions of a purpose."""
        last = self._last_decided
        if last is None or last[0] != topic or last[1] is not properties:
            last = self._last_decided = topic, properties, {}
        found = last[2].get(purpose)
        if found is None:
            store, strict = self.kept.reservations, self._section.strict
            if terms is None:
                found = store.decide(topic, purpose, strict).allowed
            else:
                found = not refuses(terms, purpose)  # as it does most readers of a busy topic
                found = found and decide([*store.covering(topic), terms], purpose, strict).allowed
            last[2][purpose] = found
        return found

    def _purpose(self, session: MqttSession, granted: GrantedSubscription | None) -> Purpose | None:
        return self._readers.purpose(session, granted)

    def _terms(self, topic: str, properties: Properties) -> Clause | None:
        """Return the clause of a message itself, which the last was, too, more often than not."""
        if not properties or "user_property" not in properties:
            return None
        last = self._last_terms
        if last is not None and last[0] is properties:
            return last[1]
        found = commands.read_terms(properties)
        clause = None
        if found is not None:
            clause = of_message("", topic, found.aip, found.pip, self.vocabulary)
        self._last_terms = properties, clause
        return clause

    def _of_message(self, user: str, client_id: str, topic: str, properties: Properties) -> int | None:
        try:
            found = commands.read_terms(properties)
            if found is not None:
                of_message(user, topic, found.aip, found.pip, self.vocabulary)
        except (UnreadableCommand, UsageError) as error:
            self._refuse(user, client_id, "message", topic, str(error))
            return Reason.IMPLEMENTATION_SPECIFIC_ERROR
        return None

    # What changes.

    def _changed(self, wanted: str | None) -> None:
        """Decide anew what a change in a filter reaches, all for `None`."""
        self._last_decided = None
        images = () if wanted is None else self.kept.ways.images(wanted)
        if self._broker is not None:  # a reload may come before there is one
            for image in images if 0 < len(images) <= MANY else (None,):
                self._broker.rules_changed(image)
        self._resting.changed(wanted)
        for told_of in self.changes:
            told_of()

    def _withdraw(self, user: str, topic: str) -> bool:
        name = self.sealed_as(topic)
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
