"""Which subscriptions rest: those that would get, as a whole, something that they may not have, or nothing.

To decide that for a wide filter takes as long as there are reservations below it. So after a change it is
decided once for each filter and purpose, when a message asks or some moment later, and not with every change.
"""

from __future__ import annotations

from itertools import islice

from hushcast_gateway.purposes.readers import Readers
from hushcast_protocol.mqtt.session import Granted
from hushcast_protocol.purposes.names import Purpose
from hushcast_protocol.purposes.stores import Reservations
from hushcast_protocol.purposes.wide import reach
from hushcast_runtime.logs import log

AT_ONCE = 500  # subscriptions that one look decides; the others come with the next, a second later
MAX_KNOWN = 10_000  # answers remembered until something changes; each takes 200 bytes


class Resting:
    """Subscriptions that rest, by the mode: in "publish" none ever does."""

    def __init__(self, reservations: Reservations, readers: Readers, mode: str, strict: bool) -> None:
        self._reservations = reservations
        self._readers = readers
        self._mode = mode
        self.strict = strict
        self._known: dict[tuple[str, Purpose | None], bool] = {}
        self._stale: set[Granted] = set()
        self._turned: set[Granted] = set()
        self._resting: set[Granted] = set()

    def __len__(self) -> int:
        """Return how many rest."""
        return len(self._resting)

    def __contains__(self, granted: object) -> bool:
        """Tell whether a subscription was found to rest."""
        return granted in self._resting

    def would(self, wanted: str, purpose: Purpose | None) -> bool:
        """Tell whether a subscription to a filter for a purpose would rest."""
        if self._mode == "publish" or wanted.startswith("$"):
            return False
        key = wanted, purpose
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            found = self._known[key] = self._decide(wanted, purpose)
        return found

    def add(self, granted: Granted, purpose: Purpose | None) -> bool:
        """Take a subscription; return whether it rests from the beginning."""
        if self.would(granted.wanted, purpose):
            self._resting.add(granted)
            return True
        return False

    def remove(self, granted: Granted) -> None:
        """Forget a subscription."""
        for known in (self._resting, self._stale, self._turned):
            known.discard(granted)

    def changed(self, wanted: str | None) -> None:
        """Decide anew, not yet, what a change in a filter reaches, all for `None`."""
        if self._mode != "publish":
            self._known.clear()
            self._stale.update(self._readers.reached(wanted))

    def holds_back(self, granted: Granted) -> bool:
        """Tell whether a subscription gets no message now, whatever its topic is."""
        if self._mode == "subscribe" and granted in self._stale:  # no other check follows
            self._look(granted)
        return granted in self._resting

    def settle(self) -> list[Granted]:
        """Decide what changes have reached; return those that rest now, or do so no more."""
        for granted in list(islice(self._stale, AT_ONCE)):
            self._look(granted)
        turned, self._turned = list(self._turned), set()
        return turned

    def _look(self, granted: Granted) -> None:
        self._stale.discard(granted)
        session = self._readers.session(granted)
        if session is None:
            return
        if self.would(granted.wanted, self._readers.purpose(session, granted)) != (granted in self._resting):
            self._resting ^= {granted}
            self._turned ^= {granted}

    def _decide(self, wanted: str, purpose: Purpose | None) -> bool:
        """Decide by the reservations; what cannot be decided rests."""
        try:
            found = reach(wanted, self._reservations.intersecting(wanted), purpose, self.strict)
            return not (found.everywhere if self._mode == "subscribe" else found.somewhere)
        except Exception as error:
            log.error("a subscription cannot be decided: it rests", error=type(error).__name__)
            return True
