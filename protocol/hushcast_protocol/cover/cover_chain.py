"""The three relays of a daemon's letters, kept: each fresh draw would be another chance to be named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum

from hushcast_protocol.base.secrets import Randomness, below
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_lists import CoverLists

# Seconds between changes at least: who loses letters does not make chains change often.
CHANGED_AFTER = 30 * 86_400
PORTER_AWAY = 86_400  # seconds on end that a porter is out of reach before another is drawn


class CoverLoss(Enum):
    """What a daemon misses by a chain whose porter answers."""

    NOTHING = "nothing"
    LETTERS = "letters"
    """More than half of its loops did not come back."""
    LISTS = "lists"
    """No list of receipts came for a day."""


class Suspect(Enum):
    """The part of a chain that was changed last for a loss."""

    NOBODY = 0
    PAIR = 1
    PORTER = 2


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
    suspect: Suspect = Suspect.NOBODY

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
        self, lists: CoverLists, quarter: int, now: float, loss: CoverLoss, randomness: Randomness
    ) -> CoverChain:
        """Return the chain by the lists of now: another pair in a new quarter, or where it has to be left.

        It has to where a relay left its list, or its turn has come for a loss; at most once in
        `CHANGED_AFTER`. Until then the chain stays, and what it does not bring does not go another way.
        """
        has_left = self.second not in lists.seconds or self.third not in lists.thirds
        is_ripe = now - self.pair_since >= CHANGED_AFTER
        is_suspect = self._suspect_of(loss, now) == Suspect.PAIR
        if quarter == self.quarter and not (is_ripe and has_left) and not is_suspect:
            return self
        second = _one(lists.seconds - {self.porter}, randomness)
        third = _one(lists.thirds - {self.porter}, randomness)
        suspect = Suspect.PAIR if is_suspect else self.suspect
        return replace(self, second=second, third=third, quarter=quarter, pair_since=now, suspect=suspect)

    def with_porter(
        self,
        relays: Collection[RelayId],
        away_since: float | None,
        now: float,
        loss: CoverLoss,
        randomness: Randomness,
    ) -> CoverChain:
        """Return the chain with another porter: this one was out of reach for too long, or it is its turn."""
        is_away = away_since is not None and now - away_since >= PORTER_AWAY
        is_ripe = now - self.porter_since >= CHANGED_AFTER
        is_suspect = self._suspect_of(loss, now) == Suspect.PORTER
        others = set(relays) - {self.porter, self.second, self.third}
        if not others or not ((is_away and is_ripe) or is_suspect):
            return self
        suspect = Suspect.PORTER if is_suspect else self.suspect
        return replace(self, porter=_one(others, randomness), porter_since=now, suspect=suspect)

    def _suspect_of(self, loss: CoverLoss, now: float) -> Suspect:
        """Return which part is to be changed for a loss now, once in `CHANGED_AFTER` of whichever.

        For letters it is the pair first, for lists the porter, and each after the other where the loss goes
        on: a daemon cannot tell who of the three loses, and each would else have the others drawn anew again
        and again until all three collude.
        """
        if loss == CoverLoss.NOTHING or now - max(self.porter_since, self.pair_since) < CHANGED_AFTER:
            return Suspect.NOBODY
        first, other = Suspect.PAIR, Suspect.PORTER
        if loss == CoverLoss.LISTS:
            first, other = other, first
        return other if self.suspect == first else first


def _one(relays: Collection[RelayId], randomness: Randomness) -> RelayId:
    return sorted(relays)[below(randomness, len(relays))]
