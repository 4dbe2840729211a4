"""The three relays of a daemon's letters, kept: each fresh draw would be another chance to be named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hushcast_protocol.base.secrets import Randomness, below
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_lists import CoverLists

# Seconds between changes at least: who loses letters does not make chains change often.
CHANGED_AFTER = 30 * 86_400
PORTER_AWAY = 86_400  # seconds on end that a porter is out of reach before another is drawn


@dataclass(frozen=True, slots=True)
class CoverChain:
    """Porter, second and third of one daemon, for all that it does."""

    porter: RelayId
    second: RelayId
    third: RelayId
    quarter: int
    """The quarter whose lists the pair was drawn from."""
    porter_since: float
    pair_since: float

    @classmethod
    def drawn(
        cls,
        relays: Collection[RelayId],
        lists: CoverLists,
        quarter: int,
        now: float,
        randomness: Randomness,
    ) -> CoverChain:
        """Draw a first chain: the porter from all relays, second and third from their lists.

        A relay that is second or third is no porter of the same daemon. There are twelve relays at least.
        """
        second, third = _one(lists.seconds, randomness), _one(lists.thirds, randomness)
        porter = _one(set(relays) - {second, third}, randomness)
        return cls(porter, second, third, quarter, now, now)

    def with_lists(
        self, lists: CoverLists, quarter: int, now: float, loops_lost: bool, randomness: Randomness
    ) -> CoverChain:
        """Return the chain by the lists of now: another pair in a new quarter, or where it has to be left.

        It has to where a relay left its list, or more than half of the loops are lost; at most once in
        `CHANGED_AFTER`. Until then the chain stays, and what it does not bring does not go another way.
        """
        has_left = self.second not in lists.seconds or self.third not in lists.thirds
        is_ripe = now - self.pair_since >= CHANGED_AFTER
        if quarter == self.quarter and not (is_ripe and (has_left or loops_lost)):
            return self
        second = _one(lists.seconds - {self.porter}, randomness)
        third = _one(lists.thirds - {self.porter}, randomness)
        return replace(self, second=second, third=third, quarter=quarter, pair_since=now)

    def with_porter(
        self, relays: Collection[RelayId], away_since: float | None, now: float, randomness: Randomness
    ) -> CoverChain:
        """Return the chain with another porter where this one was out of reach for too long."""
        is_ripe = now - self.porter_since >= CHANGED_AFTER
        if away_since is None or now - away_since < PORTER_AWAY or not is_ripe:
            return self
        others = set(relays) - {self.porter, self.second, self.third}
        return replace(self, porter=_one(others, randomness), porter_since=now) if others else self


def _one(relays: Collection[RelayId], randomness: Randomness) -> RelayId:
    return sorted(relays)[below(randomness, len(relays))]
