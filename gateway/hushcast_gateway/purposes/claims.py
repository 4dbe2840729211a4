"""What users may claim, reserve and presubscribe, by the configuration that holds now."""

from __future__ import annotations

from collections.abc import Mapping

from hushcast_gateway.sections.purposes_section import PurposesOfUser
from hushcast_protocol.mqtt.topics.access import filled
from hushcast_protocol.mqtt.topics.topic_filters import covers
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.vocabulary import Vocabulary


class Claims:
    """The users' sections, the empty name's being anybody's."""

    def __init__(self, users: Mapping[str, PurposesOfUser], vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._users = dict(users)
        self._claims = {name: frozenset(one.purposes) for name, one in users.items()}

    def may_claim(self, user: str, purpose: Purpose) -> bool:
        """Tell whether a user may use messages for a purpose: it, or one above it, is in its list."""
        return purpose in self._vocabulary and not self._claims.get(user, frozenset()).isdisjoint(
            ancestors(purpose)
        )

    def default(self, user: str) -> Purpose | None:
        """Return what a user's subscriptions are for that name nothing."""
        section = self._users.get(user)
        return None if section is None or section.purpose is None else Purpose(section.purpose)

    def may_reserve(self, user: str, client_id: str, wanted: str) -> bool:
        """Tell whether a user may reserve all topics of a filter."""
        section = self._users.get(user)
        if section is None:
            return False
        for one in filled(section.reserve, user, client_id):  # noqa: SIM110 - a generator takes longer
            if covers(one, wanted):
                return True
        return False

    def reserves(self, user: str) -> bool:
        """Tell whether a user may reserve anything."""
        section = self._users.get(user)
        return section is not None and bool(section.reserve)

    def whose(self, user: str, client_id: str) -> tuple[str, ...]:
        """Return the users whose client of this name a user may presubscribe.

        Its own always, if it may claim purposes at all; a stranger's client may take any name.
        """
        section = self._users.get(user)
        if section is None:
            return ()
        listed = (one.partition("/") for one in section.may_presubscribe)
        others = [name for name, _, client in listed if client == client_id and name != user]
        return (*([user] if section.purposes else []), *others)
