"""Network covers: which relays may be second and third, by the rosters that a daemon holds."""

from __future__ import annotations

from collections.abc import Iterator

from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_lists import CoverLists
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.network_cover import network_cover, rules_by


class NetworkCovers:
    """Cover of one network, as one daemon knows it."""

    def __init__(self, rosters: RosterKeeper) -> None:
        self._rosters = rosters
        self._lists: dict[bytes, CoverLists | None] = {}  # by the rosters' digests

    def rules(self) -> CoverRules | None:
        """Return the lengths by the newest roster; `None`: the network has no cover."""
        return rules_by(self._rosters.newest)

    def is_second(self, relay: RelayId) -> bool:
        """Tell whether a relay is on the list of seconds by any roster held: others may hold another."""
        return any(relay in lists.seconds for lists in self._held())

    def is_third(self, relay: RelayId) -> bool:
        """Tell the same of the list of thirds."""
        return any(relay in lists.thirds for lists in self._held())

    def seconds(self) -> frozenset[RelayId]:
        """Return the seconds by the newest roster that has lists; none where none has."""
        newest: frozenset[RelayId] = frozenset()
        for lists in self._held():
            newest = lists.seconds
        return newest

    def _held(self) -> Iterator[CoverLists]:
        """Return the lists of the rosters held, ascending by epoch."""
        rosters = self._rosters.rosters()
        before, self._lists = self._lists, {}
        for roster in rosters:
            if roster.digest in before:
                lists = before[roster.digest]
            else:
                try:
                    lists = network_cover(roster).lists
                except Refusal:
                    lists = None
            self._lists[roster.digest] = lists
        return (lists for lists in self._lists.values() if lists is not None)
