"""The subscriptions there are, what each is for, and which rest because of reservations."""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from hushcast_gateway.purposes.claims import Claims
from hushcast_gateway.purposes.kept import Kept
from hushcast_gateway.purposes.records import Presubscription
from hushcast_protocol.mqtt.session import Granted, Session
from hushcast_protocol.mqtt.tree import FilterTree
from hushcast_protocol.purposes.names import Purpose
from hushcast_protocol.purposes.wide import Reach, reach

_NOT_YET = object()

log = structlog.get_logger("gateway")


class Readers:
    """All subscriptions of all sessions."""

    def __init__(self, kept: Kept, claims: Claims, mode: str, strict: bool) -> None:
        """`mode` is as the settings have it: in "publish", none ever rests."""
        self.claims = claims
        self._kept = kept
        self._mode = mode
        self._strict = strict
        self._sessions: dict[Granted, Session] = {}
        self._tree: FilterTree[set[Granted]] = FilterTree()
        self._purposes: dict[Granted, Purpose | None] = {}
        self.resting: set[Granted] = set()

    def purpose(self, session: Session, granted: Granted | None) -> Purpose | None:
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

    def would_rest(self, wanted: str, purpose: Purpose | None) -> bool:
        """Tell whether a subscription would get nothing as a whole."""
        return self._mode != "publish" and self._rests(wanted, purpose, {})

    def add(self, session: Session, granted: Granted) -> bool:
        """Take a subscription; return whether it rests from the beginning."""
        self._sessions[granted] = session
        there = self._tree.get(granted.wanted)
        if there is None:
            there = set()
            self._tree.put(granted.wanted, there)
        there.add(granted)
        if self.would_rest(granted.wanted, self.purpose(session, granted)):
            self.resting.add(granted)
        return granted in self.resting

    def remove(self, granted: Granted) -> None:
        """Forget a subscription."""
        self._sessions.pop(granted, None)
        there = self._tree.get(granted.wanted)
        if there is not None:
            there.discard(granted)
            if not there:
                self._tree.remove(granted.wanted)
        self._purposes.pop(granted, None)
        self.resting.discard(granted)

    def of_client(self, user: str, client_id: str) -> Iterator[tuple[Granted, Session]]:
        """Yield the subscriptions of one client."""
        for granted, session in self._sessions.items():
            if (session.user, session.client_id) == (user, client_id):
                yield granted, session

    def changed(self, wanted: str | None) -> list[tuple[Granted, Session]]:
        """Look again at all that a change in a filter reaches, at all for `None`.

        Return those that rest now and did not, and those that do not and did.
        """
        if wanted is None:
            self._purposes.clear()
        if self._mode == "publish":
            return []
        known: dict[tuple[str, Purpose | None], bool] = {}
        turned = []
        for granted, session in list(self._reached(wanted)):
            if self._rests(granted.wanted, self.purpose(session, granted), known) == (
                granted in self.resting
            ):
                continue
            self.resting ^= {granted}
            turned.append((granted, session))
        return turned

    def forget_purposes(self, user: str, client_id: str) -> None:
        """Find the purposes of a client's subscriptions anew."""
        for granted, _ in list(self.of_client(user, client_id)):
            self._purposes.pop(granted, None)

    def _holds(self, made: Presubscription) -> bool:
        """Tell whether whoever made a presubscription still may."""
        is_theirs = made.user in self.claims.whose(made.by, made.client_id)
        return is_theirs and self.claims.may_claim(made.by, made.purpose)

    def _rests(
        self, wanted: str, purpose: Purpose | None, known: dict[tuple[str, Purpose | None], bool]
    ) -> bool:
        if wanted.startswith("$"):
            return False
        key = wanted, purpose
        if key not in known:
            known[key] = self._rests_by(wanted, purpose)
        return known[key]

    def _rests_by(self, wanted: str, purpose: Purpose | None) -> bool:
        """Decide by the reservations; what cannot be decided rests."""
        try:
            found = self._reach(wanted, purpose)
        except Exception as error:
            log.error("a subscription cannot be decided: it rests", error=type(error).__name__)
            return True
        return not (found.everywhere if self._mode == "subscribe" else found.somewhere)

    def _reach(self, wanted: str, purpose: Purpose | None) -> Reach:
        return reach(wanted, self._kept.reservations.intersecting(wanted), purpose, self._strict)

    def _reached(self, wanted: str | None) -> Iterator[tuple[Granted, Session]]:
        if wanted is None:
            yield from self._sessions.items()
            return
        for there in self._tree.intersecting(wanted):
            for granted in there:
                yield granted, self._sessions[granted]
