"""The seconds of a daemon's lanes: one each, kept for a quarter, whatever is lost.

A host sees the second of its lane. If it changed for a loss, a porter would find the owner of a box with one
loss of its own making: so a change follows from the lists, which are public, and from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hushcast_protocol.base.crypto.secrets import Randomness, sample
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_chain import CoverChain
from hushcast_protocol.cover.cover_lists import CoverLists

LANES = 3  # of each daemon, in use or not


@dataclass(frozen=True, slots=True)
class LaneSeconds:
    """Which second each lane has."""

    seconds: tuple[RelayId, ...]
    quarter: int

    @classmethod
    def drawn(cls, lists: CoverLists, chain: CoverChain, quarter: int, randomness: Randomness) -> LaneSeconds:
        """Draw one for each lane: no two alike, or a second would tie boxes to each other.

        None is the porter, and where the list has enough of them none has the daemon's letters.
        """
        return cls(tuple(sample(randomness, _able(lists, chain, frozenset()), LANES)), quarter)

    def with_lists(
        self, lists: CoverLists, chain: CoverChain, quarter: int, randomness: Randomness
    ) -> LaneSeconds:
        """Return them by the lists of now: others in a new quarter, another for one that left its list."""
        if quarter != self.quarter:
            return self.drawn(lists, chain, quarter, randomness)
        kept = list(self.seconds)
        for lane, second in enumerate(kept):
            if second not in lists.seconds:
                kept[lane] = sample(randomness, _able(lists, chain, frozenset(kept)), 1)[0]
        return replace(self, seconds=tuple(kept))


def _able(lists: CoverLists, chain: CoverChain, taken: frozenset[RelayId]) -> list[RelayId]:
    able = lists.seconds - {chain.porter} - taken
    others = able - {chain.second}
    return sorted(others if len(others | taken) >= LANES else able)
