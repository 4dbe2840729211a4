"""What was lately: the last messages by their ids, so many at most."""

from __future__ import annotations

from collections import OrderedDict


class LatestIds:
    """Ids in the order in which they were added; the oldest is forgotten first."""

    def __init__(self, most: int) -> None:
        """`most` are remembered."""
        self._most = most
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, message_id: str) -> bool:
        """Tell whether an id is remembered."""
        return message_id in self._ids

    def add(self, message_id: str) -> None:
        """Remember an id."""
        self._ids[message_id] = None
        if len(self._ids) > self._most:
            self._ids.popitem(last=False)
