"""Kept answers: what is believed of what keepers of a trunk and day show, each of which may lie.

A keeper says in which epochs it was away. Who is back before a day is over is handed what waited at origins;
who is not cannot know, and is passed over as one that is silent: it counts for what it shows, and not against
the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.wire import RelayId

MAX_AWAY = EPOCHS_A_DAY + 2  # epochs of one answer: those of the day's windows


def windows(day: int) -> range:
    """Return the epochs in which keepers take messages of a day: its own, and one before and after."""
    return range(day * EPOCHS_A_DAY - 1, (day + 1) * EPOCHS_A_DAY + 1)


class KeptIds(NamedTuple):
    """What one keeper says that it keeps of what it was asked for."""

    ids: frozenset[bytes]
    away: frozenset[int] = frozenset()
    """The epochs in which it was not there, or not all the time."""

    def lacks(self, message: bytes, epoch: int) -> bool:
        """Tell whether it does not show a message, and was there in an epoch in which it would have come."""
        return message not in self.ids and epoch not in self.away


def last_epoch(day: int) -> int:
    """Return a day's last epoch: who was there in it was handed all that waited for it at origins."""
    return (day + 1) * EPOCHS_A_DAY - 1


def shown_by_most(shown: Mapping[RelayId, KeptIds], epoch: int) -> set[bytes]:
    """Return the ids that more keepers show than do not, of those that were there in an epoch, and than one.

    What one alone shows may be its own invention.
    """
    votes = Counter(one for kept in shown.values() for one in kept.ids)
    there = [kept.ids for kept in shown.values() if epoch not in kept.away]
    shown_there = Counter(one for ids in there for one in ids)
    return {one for one, count in votes.items() if count > 1 and count > len(there) - shown_there[one]}
