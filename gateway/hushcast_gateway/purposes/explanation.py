"""Why a client gets a topic's messages or not, by the configuration and what the gateway has on disk.

It asks no gateway: subscriptions that end with their connection are not on disk, and for a client that has no
others a user and a purpose have to be named.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hushcast_gateway.broker_state import look_into
from hushcast_gateway.purposes.alias_keys import read_files
from hushcast_gateway.purposes.claims import Claims
from hushcast_gateway.purposes.purpose_state import PurposeState, configured
from hushcast_gateway.purposes.readers import Readers
from hushcast_gateway.purposes.records import AUDIT, AuditRecord, read_audit
from hushcast_gateway.purposes.suspensions import STEPS_AT_ONCE
from hushcast_gateway.sections.purposes_section import CONFIGURATION, PurposesSection, vocabulary_of
from hushcast_gateway.settings import GatewaySettings
from hushcast_protocol.base.budget import Budget
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.kept.mqtt_records import SESSION, SUBSCRIPTION
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.topics.access import AccessPermissions
from hushcast_protocol.mqtt.topics.topic_filters import is_name, matches, normal
from hushcast_protocol.mqtt.topics.ways import Ways
from hushcast_protocol.purposes.filter_reach import FilterReach
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import read_records

NO_SECTION = "this configuration has no section [purposes]: messages are for anything"


class Explanation(msgspec.Struct, frozen=True):
    """Of one subscription of a client, on disk or supposed."""

    user: str
    filter: str
    """Empty for one that is supposed."""
    purpose: str | None
    allowed: bool
    """Whether it gets what is published at this gateway."""
    because: str
    opens: bool | None = None
    """Whether it gets what comes over the network, too, as far as it was sealed for its purpose.

    `None` where the topic does not travel by an alias with keys.
    """


def explain(
    settings: GatewaySettings, client_id: str, topic: str, user: str | None, purpose: str | None
) -> list[Explanation]:
    """Explain for each subscription of a client that matches a topic; for a supposed one with `user`.

    Raises `UsageError` where there is nothing to explain, `StoreError` or `DamagedRecord` for the disk.
    """
    section = settings.purposes
    if section is None:
        raise UsageError(NO_SECTION)
    if not is_name(topic):
        raise UsageError("name a topic, without wildcards")
    why = _Why(settings, section)
    if user is not None:
        return [why.of(user, client_id, "", topic, why.supposed(user, client_id, topic, purpose))]
    if purpose is not None:
        raise UsageError("--purpose supposes a subscription: name its user with --user, too")
    found = [
        why.of(session.user, client_id, granted.wanted, topic, why.purpose_of(session, granted))
        for session in look_into(settings.state_path() / DATABASE, (SESSION, SUBSCRIPTION)).sessions
        if session.client_id == client_id
        for granted in session.filters.values()
        if any(matches(granted.wanted, name) for name in why.ways.names(topic).shown)
    ]
    if not found:
        raise UsageError(
            "no subscription of this client on disk matches the topic; those that end with their connection "
            "are not there: suppose one with --user and --purpose"
        )
    return found


def read_log(settings: GatewaySettings) -> Iterator[AuditRecord]:
    """Yield the entries of the audit log, the oldest first; raises `StoreError` or `DamagedRecord`."""
    path = settings.state_path() / DATABASE
    if path.exists():
        for _, value in read_records(path, AUDIT):
            yield read_audit(value)


class _Why:
    """The rules as a configuration and a disk have them."""

    def __init__(self, settings: GatewaySettings, section: PurposesSection) -> None:
        self._settings = settings
        self._section = section
        self._vocabulary: Vocabulary = vocabulary_of(section)
        owners = {CONFIGURATION, *settings.speakers()}
        maps = {one.from_: one.to for one in settings.gateway.map}
        self.ways = Ways([one.name for one in settings.gateway.alias], maps)
        self._state = PurposeState(section.store, configured(section, self._vocabulary), owners, self.ways)
        self._keys = {one.name: one.keys for one in settings.gateway.alias if one.keys is not None}
        self._state.read(settings.state_path() / DATABASE)
        self._claims = Claims(settings.speakers(), self._vocabulary)
        self._readers = Readers(self._state, self._claims)

    def purpose_of(self, session: MqttSession, granted: GrantedSubscription) -> Purpose | None:
        return self._readers.purpose_of(session.user, session.client_id, granted.wanted, granted.purpose)

    def supposed(self, user: str, client_id: str, topic: str, purpose: str | None) -> Purpose | None:
        if purpose is None:
            return self._readers.purpose_of(user, client_id, topic, "")
        named = self._vocabulary.read(purpose)
        if not self._claims.may_claim(user, named):
            raise UsageError(f"{user or 'anybody'} may not claim {named}: see `purposes` of that user")
        return named

    def of(self, user: str, client_id: str, wanted: str, topic: str, purpose: Purpose | None) -> Explanation:
        allowed, because = self._decide(user, client_id, wanted, topic, purpose)
        opens = self._opens(topic, purpose) if allowed else None
        if opens is not None:
            grants = "a grant" if opens else "no grant"
            because += f"; of what comes over the network {grants} that is held opens what is sealed for it"
        return Explanation(user, wanted, purpose, allowed, because, opens)

    def _opens(self, topic: str, purpose: Purpose | None) -> bool | None:
        """Tell whether what comes sealed to a topic may open for a purpose; raises `UsageError`."""
        found = self.ways.of_topic(topic)
        keys = None if found is None or found[0].is_open else self._keys.get(found[0].name)
        if keys is None:
            return None
        granted = {one.purpose for one in read_files(keys).grants}
        return purpose is not None and not granted.isdisjoint(ancestors(purpose))

    def _decide(
        self, user: str, client_id: str, wanted: str, topic: str, purpose: Purpose | None
    ) -> tuple[bool, str]:
        section = self._settings.speakers().get(user)
        if section is None:
            return False, "the configuration has no such user"
        if not AccessPermissions(section.access(), user, client_id).may_receive(self.ways.names(topic)):
            return False, "the user's access list does not show the topic"
        store, strict = self._state.reservations, self._section.strict
        asked = normal(wanted or topic)
        if self._section.mode != "publish":
            budget = Budget(STEPS_AT_ONCE)  # as the gateway, which may not know, either
            found = FilterReach(asked, store.intersecting(asked), purpose, strict, budget)
            if not (found.everywhere if self._section.mode == "subscribe" else found.somewhere):
                return False, f"the whole subscription is paused: {found.because}"
        decision = store.decide(topic, purpose, strict)
        return decision.allowed, decision.because
