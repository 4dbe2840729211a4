"""Items: what children ask for, in the form that the network's privacy model has them show it in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hushcast_protocol.brokers.clear_words import CoveredFilter, ShownFilter, from_outside
from hushcast_protocol.brokers.community.sealed_filter import SealedFilter
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.roots import RootChanges

Item = ShownFilter | CoveredFilter | SealedFilter | LayeredWord
"""What is asked for, a tagged union over models. It has a `name`: 16 bytes, equal for equal items."""


class ItemChanges(NamedTuple):
    """How what a broker shows its parent differs from before, or a piece of it; no item is in both."""

    show: Iterable[Item]
    withdraw: Iterable[bytes]
    """By name."""
    is_all_shown: bool = True
    """Whether all that is to be shown now was taken (`roots.RootChanges`)."""
    has_more: bool = False
    """Whether there may be more to take."""


def of_roots(changes: RootChanges) -> ItemChanges:
    """Return what changed among roots as it is shown under `clear`."""
    return ItemChanges(
        [*map(from_outside, changes.shown), *map(_covered, changes.covered)],
        [from_outside(one).name for one in changes.withdrawn]
        + [_covered(one).name for one in changes.uncovered],
        changes.is_all_shown,
        changes.has_more,
    )


def _covered(one: Filter) -> CoveredFilter:
    return CoveredFilter(from_outside(one))
