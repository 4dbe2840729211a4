"""The three relays of a daemon's letters, kept: each fresh draw would be another chance to be named."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum

from hushcast_protocol.base.crypto.secrets import Randomness, below
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_lists import CoverLists

# Seconds between changes at least: who loses letters does not make chains change often.
CHANGED_AFTER = 30 * 86_400
PORTER_AWAY = 86_400  # seconds on end that a porter is out of reach before another is drawn


class CoverLoss(Enum):
    """What a daemon misses by a chain whose porter answers."""

    NOTHING = "nothing"
    LETTERS = "letters"
    """More rounds are lost than by relays that restart now and then (`loss_judge.py`)."""
    LISTS = "lists"
    """No list of receipts came for a day."""


class _Suspect(Enum):
    """The part of a chain that is to be changed for a loss."""

    NOBODY = "nobody"
    PORTER = "porter"
    PAIR = "pair"


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
    porter_lost: float = 0.0
    """Unix time at which a porter was left last for a loss; 0: none was."""
    pair_lost: float = 0.0
    """The same of a pair."""

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
        `CHANGED_AFTER` of either. Until then the chain stays, and what it does not bring does not go another
        way.
        """
        has_left = self.second not in lists.seconds or self.third not in lists.thirds
        is_ripe = now - self.pair_since >= CHANGED_AFTER
        is_suspect = self._suspect_of(loss, now) == _Suspect.PAIR
        if quarter == self.quarter and not (is_ripe and has_left) and not is_suspect:
            return self
        second = _one(lists.seconds - {self.porter}, randomness)
        third = _one(lists.thirds - {self.porter}, randomness)
        lost = now if is_suspect else self.pair_lost
        return replace(self, second=second, third=third, quarter=quarter, pair_since=now, pair_lost=lost)

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
        is_suspect = self._suspect_of(loss, now) == _Suspect.PORTER
        others = set(relays) - {self.porter, self.second, self.third}
        if not others or not ((is_away and is_ripe) or is_suspect):
            return self
        lost = now if is_suspect else self.porter_lost
        return replace(self, porter=_one(others, randomness), porter_since=now, porter_lost=lost)

    @property
    def _turn(self) -> _Suspect:
        """Whose turn it is at a loss: the porter's, as it knows whose letters they are, then the pair's.

        A daemon cannot tell who of the three loses, and each would else have the others drawn anew again and
        again until all three collude.
        """
        return _Suspect.PAIR if self.porter_lost > self.pair_lost else _Suspect.PORTER

    def leaves_at(self) -> float:
        """Return the Unix time from which a part may be left for a loss: each once in `CHANGED_AFTER`.

        It is by when one was left for a loss, not by when it was drawn: who waits for a month says nothing
        for a month, and who reads the topic sees that.
        """
        last = self.pair_lost if self._turn == _Suspect.PAIR else self.porter_lost
        return last + CHANGED_AFTER if last else 0.0

    def _suspect_of(self, loss: CoverLoss, now: float) -> _Suspect:
        """Return which part is to be changed for a loss now."""
        is_just_left = now == max(self.porter_lost, self.pair_lost)
        if loss == CoverLoss.NOTHING or is_just_left or now < self.leaves_at():
            return _Suspect.NOBODY
        return self._turn


def _one(relays: Collection[RelayId], randomness: Randomness) -> RelayId:
    return sorted(relays)[below(randomness, len(relays))]
