"""The overlay as a carrier under cover: publications go in letters, and there are no subscriptions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.routes.cover.covered_messages import CoveredMessages
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import (
    Handover,
    Probing,
    Route,
    RoutedInterest,
    check_spoken,
    probed_often,
)

NO_SUBSCRIPTIONS = (
    "a daemon under cover does not subscribe: its line would show who reads. Subscribe at another daemon, "
    "or take [cover] out of the configuration, and what this one publishes shows who publishes"
)


class CoverCarrier:
    """One daemon's part in the overlay where all that it says goes in letters."""

    looking = None
    """Nobody is asked whether what was published is kept: third lists are the receipts."""

    def __init__(self, rosters: RosterKeeper, messages: CoveredMessages) -> None:
        self._rosters = rosters
        self.covering = messages
        """What takes publications."""

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return self._rosters.calendar

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name."""
        return self._rosters.manner

    @property
    def probing(self) -> Probing:
        """As elsewhere; there are no subscriptions to probe."""
        return probed_often(self.manner)

    def check_open(self) -> None:
        """Raise `NeverTaken` where nobody will take a message; whether one goes now says nothing."""
        if (wire := self._rosters.wire) is not None:
            check_spoken(wire)

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> NoReturn:
        """Raise `Refusal`: there is no way but letters."""
        raise Refusal("under cover nothing is handed over but in letters")

    def check_past(self, first: int) -> NoReturn:
        """Raise `Refusal`."""
        raise Refusal(NO_SUBSCRIPTIONS)

    async def resume(self, wanted: Collection[RoutedInterest]) -> Mapping[bytes, Route]:
        """Return nothing; raise `UsageError` where there are subscriptions from a time without cover."""
        if wanted:
            raise UsageError(f"cover.on: this daemon has subscriptions: {NO_SUBSCRIPTIONS}")
        return {}

    def keep(self, wanted: RoutedInterest) -> NoReturn:
        """Raise `Refusal`."""
        raise Refusal(NO_SUBSCRIPTIONS)
