"""Epochs: the keys that one daemon has of its communities, and which of them are open at a moment.

An epoch begins when its charter says. Then members publish under it, and nobody who is out of the community
reads anything more. Until all that may have been published under the one before has lapsed, members go on
asking for that, too: who heard late loses nothing, and what waits for somebody who is away stays readable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import EpochKey
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.wire import PublicKey

MAX_EPOCHS = 4  # of one community that are open at once: all that is asked for is asked for under each


@dataclass(frozen=True)
class MemberEpoch:
    """One epoch of a community, as a member has it."""

    community: PublicKey
    number: int
    begins: int
    """Unix seconds."""
    key: EpochKey

    @cached_property
    def label(self) -> bytes:
        """16 bytes on whatever is sealed under it; they tell outsiders no more than that it is the same."""
        return self._derived(b"label")[:LABEL]

    @cached_property
    def filters(self) -> bytes:
        """The key under which filters are sealed."""
        return self._derived(b"filters")

    @cached_property
    def words(self) -> bytes:
        """The key under which messages' words are sealed."""
        return self._derived(b"words")

    def _derived(self, use: bytes) -> bytes:
        when = self.number.to_bytes(8, "big")
        return digest(Domain.COMMUNITY, use, self.community, when, key=self.key.reveal())


@dataclass(frozen=True)
class KnownEpoch:
    """An epoch as a daemon knows of it, whether it is a member or not."""

    begins: int
    epoch: MemberEpoch | None
    """`None`: it is not in the community for that time."""


class ForgottenEpoch(NamedTuple):
    """An epoch that is known no more."""

    community: PublicKey
    number: int
    epoch: MemberEpoch | None
    """`None` where this daemon was not in the community for that time."""


class CommunityEpochs:
    """The epochs that one daemon knows, of all its communities."""

    def __init__(self, calendar: Calendar) -> None:
        self._calendar = calendar
        self._terms: dict[PublicKey, dict[int, KnownEpoch]] = {}
        self._by_label: dict[bytes, MemberEpoch] = {}

    def add(self, community: PublicKey, number: int, term: KnownEpoch) -> list[ForgottenEpoch]:
        """Know of an epoch; return those of its community that there is no room or need for any more."""
        terms = self._terms.setdefault(community, {})
        terms[number] = term
        if term.epoch is not None:
            self._by_label[term.epoch.label] = term.epoch
        numbers = sorted(number for number, one in terms.items() if one.epoch is not None)
        dropped = [self._drop(community, number) for number in numbers[:-MAX_EPOCHS]]
        return dropped + self._needless(community)

    def newest(self, community: PublicKey) -> int | None:
        """Return the number of the newest epoch known of a community."""
        return max(self._terms.get(community, ()), default=None)

    @property
    def open(self) -> list[MemberEpoch]:
        """The epochs under which things are asked for, of all communities."""
        return list(self._by_label.values())

    def of(self, community: PublicKey) -> list[MemberEpoch]:
        """Return the open epochs of one community, oldest first."""
        terms = self._terms.get(community, {})
        return [one.epoch for _, one in sorted(terms.items()) if one.epoch is not None]

    def under(self, label: bytes) -> MemberEpoch | None:
        """Return the open epoch with a label; `None` where this daemon cannot open what is under it."""
        return self._by_label.get(label)

    def current(self, community: PublicKey, now: float) -> MemberEpoch | None:
        """Return the epoch to publish under: of those that have begun the newest, or the first of all.

        `None` where this daemon is not in the community, or not any more.
        """
        terms = sorted(self._terms.get(community, {}).items())
        begun = [one for _, one in terms if one.begins <= now] or [one for _, one in terms[:1]]
        return begun[-1].epoch if begun else None

    def may_publish(self, epoch: MemberEpoch, now: float) -> bool:
        """Tell whether an epoch's publications are still taken: it is the last, or the next is fresh."""
        following = self._following(epoch)
        return following is None or now < following.begins + self._calendar.grace

    def expire(self, now: float) -> list[ForgottenEpoch]:
        """Forget the epochs of which nothing travels any more, and return them."""
        over = [epoch for epoch in self.open if self._ends(epoch) <= now]
        dropped = [self._drop(epoch.community, epoch.number) for epoch in over]
        for community in {epoch.community for epoch in over}:
            dropped += self._needless(community)
        return dropped

    def forget(self, community: PublicKey) -> list[ForgottenEpoch]:
        """Forget a community that is none of this network's any more; return its epochs."""
        dropped = [self._drop(community, number) for number in sorted(self._terms.get(community, ()))]
        self._terms.pop(community, None)
        return dropped

    def _following(self, epoch: MemberEpoch) -> KnownEpoch | None:
        terms = self._terms[epoch.community]
        later = [number for number in terms if number > epoch.number]
        return terms[min(later)] if later else None

    def _ends(self, epoch: MemberEpoch) -> float:
        following = self._following(epoch)
        if following is None:
            return float("inf")
        last = self._calendar.day(following.begins + self._calendar.grace)
        return self._calendar.lapse(last)

    def _needless(self, community: PublicKey) -> list[ForgottenEpoch]:
        """Drop what says no more than that this daemon was out: the newest counts, and what ends an epoch."""
        dropped: list[ForgottenEpoch] = []
        ends = False
        for number, term in sorted(self._terms[community].items())[:-1]:
            if term.epoch is None and not ends:
                dropped.append(self._drop(community, number))
            ends = term.epoch is not None
        return dropped

    def _drop(self, community: PublicKey, number: int) -> ForgottenEpoch:
        epoch = self._terms[community].pop(number).epoch
        if epoch is not None:
            del self._by_label[epoch.label]
        return ForgottenEpoch(community, number, epoch)
