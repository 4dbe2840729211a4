"""What clients ask for by SUBSCRIBE: which filter, for which purpose, and whether they get it so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from hushcast_gateway.network_ways import NetworkWays
from hushcast_gateway.purposes import commands
from hushcast_gateway.purposes.command_execution import NOT_CLAIMED, NOT_GRANTED
from hushcast_gateway.purposes.readers import Readers
from hushcast_gateway.purposes.records import What
from hushcast_gateway.purposes.suspensions import Suspensions
from hushcast_protocol.base.budget import Budget, BudgetExhausted
from hushcast_protocol.mqtt.interfaces import ResolvedFilter
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.topics.topic_filters import split_share
from hushcast_protocol.mqtt.wire.packets import Connect, Properties
from hushcast_protocol.purposes import filter_spelling
from hushcast_protocol.purposes.message_purposes import UnreadablePurposes
from hushcast_protocol.purposes.purpose_names import Purpose

WOULD_REST = "what is reserved there leaves it nothing, or not all of it"
TOO_MANY = "too many reservations overlap here to say what holds for the whole filter"

Note = Callable[[str, str, What, str, str, Sequence[str]], None]
"""Notes what was refused: user, client, what, filter, why, purposes."""


class SubscribeRequests:
    """Subscriptions as they are asked for."""

    def __init__(self, readers: Readers, resting: Suspensions, ways: NetworkWays, note: Note) -> None:
        self._readers = readers
        self._resting = resting
        self._ways = ways
        self._note = note
        self._of_connect: WeakKeyDictionary[Permissions, str] = WeakKeyDictionary()

    def connected(self, permissions: Permissions, connect: Connect) -> None:
        """Note the purpose that a CONNECT names for subscriptions that name none."""
        if purpose := commands.connect_purpose(connect.properties):
            self._of_connect[permissions] = purpose

    def meant(
        self, permissions: Permissions, client_id: str, wanted: str, given: Properties
    ) -> ResolvedFilter | int:
        """Return a subscription's filter and purpose, or that they cannot be read."""
        user = permissions.user
        try:
            wanted, named = commands.read_subscription(wanted, given)
        except UnreadablePurposes as error:
            self._note(user, client_id, "subscribe", "", str(error), ())
            return Reason.IMPLEMENTATION_SPECIFIC_ERROR
        wanted = self._as_presubscribed(user, client_id, wanted)
        return ResolvedFilter(wanted, named or self._of_connect.get(permissions, ""))

    def refuses(self, user: str, client_id: str, meant: ResolvedFilter, budget: Budget) -> int:
        """Return why a subscription is not made that the user may make, 0 if it is."""
        named, inside = meant.purpose, (split_share(meant.wanted) or ("", meant.wanted))[1]
        purpose = self._readers.purpose_of(user, client_id, inside, named)
        reason, why = Reason.NOT_AUTHORIZED, ""
        if named and purpose is None:
            why = NOT_CLAIMED
        elif not self._ways.may_open(inside, purpose):
            why = NOT_GRANTED
        else:
            rests = self._rests(inside, purpose, budget)
            if rests is None:
                reason, why = Reason.QUOTA_EXCEEDED, TOO_MANY
            elif rests:
                why = WOULD_REST
        if not why:
            return Reason.SUCCESS
        self._note(user, client_id, "subscribe", inside, why, [one for one in (named or purpose,) if one])
        return reason

    def _rests(self, inside: str, purpose: Purpose | None, budget: Budget) -> bool | None:
        """Tell whether a subscription would rest; `None` where that matters and cannot be said."""
        try:
            rests = self._resting.would(inside, purpose, budget)
        except BudgetExhausted:
            rests = None
        return False if rests is None and self._resting.is_by_message else rests

    def _as_presubscribed(self, user: str, client_id: str, wanted: str) -> str:
        """Return the filter of a presubscription, to which the published client subscribes as spelled."""
        decoded = filter_spelling.filter_of(wanted)
        if decoded != wanted and self._readers.is_presubscribed(user, client_id, decoded):
            return decoded
        return wanted
