"""Which subscriptions rest: those that would get, as a whole, something that they may not have, or nothing.

To decide that for a wide filter takes as long as there are reservations below it. So after a change it is
decided once for each filter and purpose, when a message asks or some moment later, and not with every change.
What takes longer than there is time for waits; until it is decided, messages are one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from hushcast_gateway.purposes.readers import Readers
from hushcast_protocol.base.budget import Budget, BudgetExhausted
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription
from hushcast_protocol.mqtt.topics.topic_filters import normal
from hushcast_protocol.purposes.filter_reach import FilterReach
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.reservations import Reservations
from hushcast_runtime.logs import log

STEPS_AT_ONCE = 40_000  # steps for one packet, or in one look: 10 to 30 ms of CPU
STEPS_OF_MESSAGES = 10_000  # steps in which messages have subscriptions decided, between two looks; some 8 ms
AT_ONCE = 500  # subscriptions that one look decides; the others come with the next, a second later
MAX_KNOWN = 10_000  # answers remembered until something changes; each takes 200 bytes


class Suspensions:
    """Subscriptions that rest, by the mode: in "publish" none ever does."""

    def __init__(self, reservations: Reservations, readers: Readers, mode: str, strict: bool) -> None:
        self._reservations = reservations
        self._readers = readers
        self._mode = mode
        self.strict = strict
        self._known: dict[tuple[str, Purpose | None], bool | None] = {}
        self._stale: dict[GrantedSubscription, None] = {}
        self._of_messages = Budget(STEPS_OF_MESSAGES)  # what messages may have decided until the next look
        self._turned: set[GrantedSubscription] = set()
        self._resting: set[GrantedSubscription] = set()

    @property
    def is_by_message(self) -> bool:
        """Whether messages are decided one by one, whatever was decided of the whole subscription."""
        return self._mode != "subscribe"

    def __len__(self) -> int:
        """Return how many rest."""
        return len(self._resting)

    def __contains__(self, granted: object) -> bool:
        """Tell whether a subscription was found to rest."""
        return granted in self._resting

    def would(self, wanted: str, purpose: Purpose | None, budget: Budget) -> bool | None:
        """Tell whether a subscription to a filter for a purpose would rest.

        `None`: there are too many reservations to say so. Raises `BudgetExhausted` where others have left too
        little of the budget.
        """
        if self._mode == "publish" or wanted.startswith("$"):
            return False
        key = wanted, purpose
        if key not in self._known:
            found = self._decide(wanted, purpose, budget)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = found
        return self._known[key]

    def add(self, granted: GrantedSubscription, purpose: Purpose | None) -> bool:
        """Take a subscription; return whether it is known to rest from the beginning."""
        if self._mode == "publish" or granted.wanted.startswith("$"):
            return False
        key = granted.wanted, purpose
        if key not in self._known:
            self._stale[granted] = None
        elif self._is_to_rest(self._known[key]):
            self._resting.add(granted)
            return True
        return False

    def remove(self, granted: GrantedSubscription) -> None:
        """Forget a subscription."""
        self._stale.pop(granted, None)
        self._resting.discard(granted)
        self._turned.discard(granted)

    def changed(self, images: Iterable[str] | None) -> None:
        """Decide anew, not yet, what a change in a filter with these images reaches, all for `None`."""
        if self._mode != "publish":
            self._known.clear()
            self._stale.update(dict.fromkeys(self._readers.reached(images)))

    def holds_back(self, granted: GrantedSubscription) -> bool:
        """Tell whether a subscription gets no message now, whatever its topic is."""
        if not self.is_by_message and granted in self._stale and not self._of_messages.is_spent:
            with suppress(
                BudgetExhausted
            ):  # then it is decided as all messages are that wait for the next look
                self._look(granted, self._of_messages)
        return granted in self._resting

    def is_open(self, granted: GrantedSubscription) -> bool:
        """Tell whether a subscription is still to be decided as a whole: until then its messages are."""
        return granted in self._stale

    def settle(self) -> list[GrantedSubscription]:
        """Decide what changes have reached, as far as one look can; return those that turned.

        What is left comes with the next look.
        """
        budget, self._of_messages = Budget(STEPS_AT_ONCE), Budget(STEPS_OF_MESSAGES)
        with suppress(BudgetExhausted):
            for granted in list(islice(self._stale, AT_ONCE)):
                self._look(granted, budget)
        turned, self._turned = list(self._turned), set()
        return turned

    def _look(self, granted: GrantedSubscription, budget: Budget) -> None:
        session = self._readers.session(granted)
        if session is not None:
            found = self.would(granted.wanted, self._readers.purpose(session, granted), budget)
            if self._is_to_rest(found) != (granted in self._resting):
                self._resting ^= {granted}
                self._turned ^= {granted}
        del self._stale[granted]

    def _is_to_rest(self, found: bool | None) -> bool:
        """Tell whether it rests; of what cannot be said, only what no other check follows."""
        return not self.is_by_message if found is None else found

    def _decide(self, wanted: str, purpose: Purpose | None, budget: Budget) -> bool | None:
        """Decide by the reservations; what cannot be decided because of an error rests."""
        is_first = budget.is_whole
        try:
            name = normal(wanted)
            clauses = self._reservations.intersecting(name, budget)
            found = FilterReach(name, clauses, purpose, self.strict, budget)
            rests = not (found.everywhere if self._mode == "subscribe" else found.somewhere)
            if found.is_whole:
                return rests
        except BudgetExhausted:
            pass
        except Exception as error:
            log.error("a subscription cannot be decided: it rests", error=type(error).__name__)
            return True
        if not is_first:
            raise BudgetExhausted
        return None
