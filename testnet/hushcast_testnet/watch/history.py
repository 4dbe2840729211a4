"""The traffic of the last minutes in slices of a few seconds; pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

SLICE = 10  # seconds
SLICES_KEPT = 60  # the last ten minutes


class History:
    """Counts by slice; times are seconds since the testnet began."""

    def __init__(self) -> None:
        self._slices: dict[int, Counter[str]] = {}

    def add(self, name: str, time: float) -> None:
        """Count an event; one that is older than all that is kept passes by."""
        number = int(time // SLICE)
        if number not in self._slices:
            self._slices[number] = Counter()
            if len(self._slices) > SLICES_KEPT:
                del self._slices[min(self._slices)]
        if number in self._slices:
            self._slices[number][name] += 1

    def until(self, now: float) -> dict[str, Any]:
        """Return the counts of all slices up to now, oldest first: `messages`, `hops` and `probe_hops`.

        `hops` are transmissions of messages, `probe_hops` those of whatever nobody has named a message.
        """
        last = int(now // SLICE)
        slices = [self._slices.get(number, Counter()) for number in range(last - SLICES_KEPT + 1, last + 1)]
        return {
            "slice": SLICE,
            "messages": [one["messages"] for one in slices],
            "hops": [one["hops"] for one in slices],
            "probe_hops": [one["sent"] - one["hops"] for one in slices],
        }
