"""The subscriptions there are, and what each is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hushcast_gateway.purposes.claims import Claims
from hushcast_gateway.purposes.purpose_state import PurposeState
from hushcast_gateway.purposes.records import Presubscription
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.topics.filter_tree import FilterTree
from hushcast_protocol.mqtt.topics.topic_filters import normal
from hushcast_protocol.purposes.purpose_names import Purpose

_NOT_YET = object()


class Readers:
    """All subscriptions of all sessions."""

    def __init__(self, kept: PurposeState, claims: Claims) -> None:
        self.claims = claims
        self._kept = kept
        self._sessions: dict[GrantedSubscription, MqttSession] = {}
        self._clients: dict[tuple[str, str], set[GrantedSubscription]] = {}
        self._tree: FilterTree[set[GrantedSubscription]] = FilterTree()
        self._purposes: dict[GrantedSubscription, Purpose | None] = {}

    def purpose(self, session: MqttSession, granted: GrantedSubscription | None) -> Purpose | None:
        """Return what a subscription is for, as far as its user may claim it now; `None`: for nothing."""
        if granted is None:
            return None
        found = self._purposes.get(granted, _NOT_YET)
        if found is _NOT_YET:
            found = self.purpose_of(session.user, session.client_id, granted.wanted, granted.purpose)
            self._purposes[granted] = found
        return found  # type: ignore[return-value]  # the other is `_NOT_YET`

    def purpose_of(self, user: str, client_id: str, wanted: str, named: str) -> Purpose | None:
        """Return it by what the client named, by a presubscription, or by the configuration."""
        if named:
            return Purpose(named) if self.claims.may_claim(user, Purpose(named)) else None
        made = self._kept.presubscription(user, client_id, wanted)
        if made is not None and self._holds(made):
            return made.purpose
        return self.claims.default(user)

    def is_presubscribed(self, user: str, client_id: str, wanted: str) -> bool:
        """Tell whether somebody said what subscriptions of a client to a filter are for."""
        return self._kept.presubscription(user, client_id, wanted) is not None

    def add(self, session: MqttSession, granted: GrantedSubscription) -> None:
        """Take a subscription."""
        self._sessions[granted] = session
        self._clients.setdefault((session.user, session.client_id), set()).add(granted)
        wanted = normal(granted.wanted)
        there = self._tree.get(wanted)
        if there is None:
            there = set()
            self._tree.put(wanted, there)
        there.add(granted)

    def remove(self, granted: GrantedSubscription) -> None:
        """Forget a subscription."""
        if (session := self._sessions.pop(granted, None)) is None:
            return
        client = session.user, session.client_id
        self._clients[client].discard(granted)
        if not self._clients[client]:
            del self._clients[client]
        wanted = normal(granted.wanted)
        there = self._tree.get(wanted)
        if there is not None:
            there.discard(granted)
            if not there:
                self._tree.remove(wanted)
        self._purposes.pop(granted, None)

    def session(self, granted: GrantedSubscription) -> MqttSession | None:
        """Return whose subscription it is, `None` for one that is no more."""
        return self._sessions.get(granted)

    def session_of(self, user: str, client_id: str) -> MqttSession | None:
        """Return a client's session if it has subscriptions."""
        theirs = self._clients.get((user, client_id))
        return self._sessions[next(iter(theirs))] if theirs else None

    def reached(self, images: Iterable[str] | None) -> Iterator[GrantedSubscription]:
        """Yield the subscriptions that have messages in common with one of some filters, all for `None`.

        The filters are in one spelling.
        """
        if images is None:
            yield from self._sessions
            return
        for image in images:
            for there in self._tree.intersecting(image):
                yield from there

    def forget_purposes(self, of: tuple[str, str] | None) -> None:
        """Find the purposes of a client's subscriptions anew, by user and identifier; of all for `None`."""
        if of is None:
            self._purposes.clear()
            return
        for granted in self._clients.get(of, ()):
            self._purposes.pop(granted, None)

    def _holds(self, made: Presubscription) -> bool:
        """Tell whether whoever made a presubscription still may."""
        is_theirs = made.user in self.claims.whose(made.by, made.client_id)
        return is_theirs and self.claims.may_claim(made.by, made.purpose)
