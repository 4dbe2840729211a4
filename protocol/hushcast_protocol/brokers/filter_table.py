"""What a broker asks of the filters that it holds, be they in a poset, with levels or without."""

from __future__ import annotations

from collections.abc import Hashable, Set
from typing import Protocol

from hushcast_protocol.brokers.filters import Filter, Sides
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.content.topics import Topic

Source = Hashable
"""A distinct subscriber behind a filter."""


class FilterTable(Protocol):
    """Filters of any topics, and the sources of each."""

    def __len__(self) -> int:
        """The number of distinct filters."""

    def __contains__(self, given: Filter, /) -> bool: ...

    def insert(self, given: Filter, source: Source) -> bool:
        """Add a source to a filter; return whether the filter is new."""

    def remove(self, given: Filter, source: Source) -> bool:
        """Take a source from a filter; return whether the filter went with it, its last.

        Raises `KeyError` if the filter does not have the source.
        """

    def sources(self, given: Filter) -> Set[Source]:
        """Return the distinct subscribers of a filter, none if it is not here."""

    def matching(self, topic: Topic, point: Sides) -> list[Filter]:
        """Return the filters that match a message: those that cover its `point`, in no order."""

    def interested(self, topic: Topic, point: Sides) -> set[Source]:
        """Return the sources of all filters that match a message, given as its `point`."""

    def roots(self) -> Set[Filter]:
        """Return the filters that no other covers: not to be kept, as it changes with them."""

    def take_changes(self) -> RootChanges:
        """Return what changed among the roots since this was asked last, or since there was none."""
