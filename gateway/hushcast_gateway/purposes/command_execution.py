"""Commands carried out: who may reserve, presubscribe and ask, and what each is told."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_gateway.purposes import suspension_notices
from hushcast_gateway.purposes.claims import Claims
from hushcast_gateway.purposes.commands import (
    ControlCommand,
    PresubscribeCommand,
    ReleaseCommand,
    ReserveCommand,
)
from hushcast_gateway.purposes.purpose_state import PurposeState
from hushcast_gateway.purposes.records import AuditRecord, Presubscription
from hushcast_gateway.purposes.suspensions import STEPS_AT_ONCE
from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.base.budget import Budget, BudgetExhausted
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.mqtt_session import MqttSession
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.topics.topic_filters import normal
from hushcast_protocol.purposes.clauses import reserve
from hushcast_protocol.purposes.filter_reach import effective
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.vocabulary import Vocabulary

NOT_YOURS = "the user may not reserve this"
NOT_CLAIMED = "the user may not claim this purpose"
NOT_GRANTED = "no grant that is held is for its purpose, or for one above it"
CONFIGURED = "this stands in the configuration alone"
NO_KEYS = "only what travels by an alias with keys is withdrawn: elsewhere reservations hold at once"
MANY = 16  # reservations or presubscriptions taken away at once, from which on all topics are looked at anew
MAX_CLEARED = 1_000  # reservations that one command takes away: some 20 ms of CPU for the longest filters
MORE_LEFT = f"{MAX_CLEARED} reservations were taken away, and there are more: say it again"
UNKNOWN = "unknown"
"""The answer to a question whose answer would take too long."""
NO_SUCH = "there is no such command"


class CommandRefusal(Exception):
    """A command is not carried out: `reason` tells the client, `why` the audit log."""

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason = reason
        self.why = why


class CommandExecution:
    """Carries out commands of clients."""

    def __init__(
        self,
        section: PurposesSection,
        vocabulary: Vocabulary,
        kept: PurposeState,
        changed: Callable[[str | None], None],
        presubscribed: Callable[[Presubscription | None], None],
        withdraw: Callable[[str, str], bool],
    ) -> None:
        """`changed` and `presubscribed` are called for what was changed, with `None` for much of it.

        `withdraw` withdraws what a user published to a topic; it tells whether that is possible there, and
        raises `UsageError` at a bound.
        """
        self._withdraw = withdraw
        self._section = section
        self._vocabulary = vocabulary
        self._kept = kept
        self._changed = changed
        self._presubscribed = presubscribed

    def replace(self, section: PurposesSection, vocabulary: Vocabulary) -> None:
        """Go by another configuration."""
        self._section, self._vocabulary = section, vocabulary

    def do(
        self,
        command: ReserveCommand | ReleaseCommand | PresubscribeCommand | ControlCommand,
        permissions: Permissions,
        client_id: str,
        claims: Claims,
        here: MqttSession | None,
    ) -> AuditRecord | None:
        """Carry out a command; return what to note, less the time. Raises `CommandRefusal`.

        `here` is the session that asks, if it has subscriptions.
        """
        user = permissions.user
        if isinstance(command, ReserveCommand):
            return self._reserve(command, user, client_id, claims)
        if isinstance(command, ReleaseCommand):
            return self._release(command.filter, user, client_id, claims)
        if isinstance(command, PresubscribeCommand):
            return self._presubscribe(command, user, client_id, claims)
        return self._control(command, permissions, client_id, claims, here)

    def _reserve(self, command: ReserveCommand, user: str, client_id: str, claims: Claims) -> AuditRecord:
        if not claims.may_reserve(user, client_id, command.filter):
            raise CommandRefusal(Reason.NOT_AUTHORIZED, NOT_YOURS)
        try:
            clause = reserve(user, command.filter, command.aip, command.pip, self._vocabulary)
        except UsageError as error:
            raise CommandRefusal(Reason.IMPLEMENTATION_SPECIFIC_ERROR, str(error)) from None
        try:
            self._kept.reserve(clause)
        except UsageError as error:
            raise CommandRefusal(Reason.QUOTA_EXCEEDED, str(error)) from None
        self._changed(command.filter)
        return AuditRecord(0.0, user, client_id, "reserve", command.filter, command.aip, command.pip)

    def _release(self, wanted: str, user: str, client_id: str, claims: Claims) -> AuditRecord | None:
        if not claims.may_reserve(user, client_id, wanted):
            raise CommandRefusal(Reason.NOT_AUTHORIZED, NOT_YOURS)
        if not self._kept.release(user, wanted):
            return None
        self._changed(wanted)
        return AuditRecord(0.0, user, client_id, "release", wanted)

    def _presubscribe(
        self, command: PresubscribeCommand, user: str, client_id: str, claims: Claims
    ) -> AuditRecord | None:
        whose = claims.whose(user, command.client_id)
        if not whose:
            raise CommandRefusal(Reason.NOT_AUTHORIZED, "the user may not presubscribe this client")
        if not command.purpose:
            for name in whose:
                made = self._kept.presubscription(name, command.client_id, command.filter)
                if made is not None and made.by == user:
                    self._kept.unpresubscribe(made)
                    self._presubscribed(made)
            return AuditRecord(0.0, user, client_id, "presubscribe", command.filter)
        try:
            purpose = self._vocabulary.read(command.purpose)
        except UsageError as error:
            raise CommandRefusal(Reason.IMPLEMENTATION_SPECIFIC_ERROR, str(error)) from None
        if not claims.may_claim(user, purpose):
            raise CommandRefusal(Reason.NOT_AUTHORIZED, NOT_CLAIMED)
        for name in whose:
            made = Presubscription(name, command.client_id, command.filter, purpose, user)
            try:
                self._kept.presubscribe(made)
            except UsageError as error:
                raise CommandRefusal(Reason.QUOTA_EXCEEDED, str(error)) from None
            self._presubscribed(made)
        return AuditRecord(0.0, user, client_id, "presubscribe", command.filter, (purpose,))

    def _control(
        self,
        command: ControlCommand,
        permissions: Permissions,
        client_id: str,
        claims: Claims,
        here: MqttSession | None,
    ) -> AuditRecord | None:
        name, user = command.name, permissions.user
        if name == "WITHDRAW":
            return self._withdrawn(command.argument, permissions, client_id)
        if name in ("CRES", "ARES"):
            self._tell_effective(command, permissions, client_id, claims, here)
            return None
        if not claims.reserves(user):
            raise CommandRefusal(Reason.NOT_AUTHORIZED, NOT_YOURS)
        if name in ("CLEAR", "RESET"):
            self._clear(user)
            return AuditRecord(0.0, user, client_id, "control", name)
        if name in ("PERSIST", "RELOAD"):
            return None  # all is on disk before it is acknowledged
        if name == "SET":
            if _set(self._section).get(command.argument) != command.value:
                raise CommandRefusal(Reason.NOT_AUTHORIZED, CONFIGURED)
            return None
        raise CommandRefusal(Reason.TOPIC_NAME_INVALID, NO_SUCH)

    def _withdrawn(self, topic: str, permissions: Permissions, client_id: str) -> AuditRecord:
        if not permissions.user or not permissions.may_publish(self._kept.ways.names(topic)):
            raise CommandRefusal(Reason.NOT_AUTHORIZED, "the user may not publish to this topic")
        try:
            is_possible = self._withdraw(permissions.user, topic)
        except UsageError as error:
            raise CommandRefusal(Reason.QUOTA_EXCEEDED, str(error)) from None
        if not is_possible:
            raise CommandRefusal(Reason.IMPLEMENTATION_SPECIFIC_ERROR, NO_KEYS)
        return AuditRecord(0.0, permissions.user, client_id, "withdraw", topic)

    def _clear(self, user: str) -> None:
        """Take away all that a user has said: nobody can take away what others have.

        Raises `CommandRefusal` where that is more than can be done at once, and has done a part of it.
        """
        released, made_by = self._kept.owned(user), self._kept.made_by(user)
        for wanted in released[:MAX_CLEARED]:
            self._kept.release(user, wanted)
        for made in made_by:
            self._kept.unpresubscribe(made)
        for one in released if len(released) <= MANY else [None]:
            self._changed(one)
        for each in made_by if len(made_by) <= MANY else [None]:
            self._presubscribed(each)
        if len(released) > MAX_CLEARED:
            raise CommandRefusal(Reason.QUOTA_EXCEEDED, MORE_LEFT)

    def _tell_effective(
        self,
        command: ControlCommand,
        permissions: Permissions,
        client_id: str,
        claims: Claims,
        here: MqttSession | None,
    ) -> None:
        """Tell who asks for which purposes all of a filter's messages may be used, or that it is not known.

        Who may read a part of them alone is told nothing: what is kept back would show in the answer.
        """
        wanted, ways = command.argument, self._kept.ways
        may_read = permissions.may_subscribe(ways.names_of_filter(wanted))
        may_read = may_read and not permissions.keeps_back(ways.images(wanted))
        if not may_read and not claims.may_reserve(permissions.user, client_id, wanted):
            raise CommandRefusal(Reason.NOT_AUTHORIZED, "the user may neither read nor reserve this")
        if here is None:
            return
        try:
            text = "{" + ",".join(sorted(self._effective(normal(wanted)))) + "}"
        except BudgetExhausted:
            text = UNKNOWN
        spelled = wanted.replace("#", "HASH").replace("+", "PLUS")
        suspension_notices.answer(here, f"!PBAC/{command.name}/{spelled}", text.encode())

    def _effective(self, wanted: str) -> frozenset[Purpose]:
        budget, strict = Budget(STEPS_AT_ONCE), self._section.strict
        clauses = self._kept.reservations.intersecting(wanted, budget)
        return effective(wanted, clauses, self._vocabulary, strict, budget)


def _set(section: PurposesSection) -> dict[str, bytes]:
    """Return the published program's settings as they are here: a client may say them, and change none."""
    values = {
        "filter_on_publish": section.mode == "publish",
        "filter_on_subscribe": section.mode == "subscribe",
        "filter_hybrid": section.mode == "hybrid",
        "use_tree_store": section.store != "flat",
        "cache_reservations": section.store == "cached",
        "cache_subscriptions": section.store == "cached",
        "auto_persist": True,
    }
    return {name: b"true" if value else b"false" for name, value in values.items()}
