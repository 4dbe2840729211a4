"""The state of one link to a next hop: numbers, window, cumulative acknowledgements, and when it is given up.

Items have no number on the wire: each is its place on the link, from 1. An acknowledgement names the last
place that the other end took over, and which places up to it lead nowhere there (*unrouted*).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, Protocol, TypeVar

IDLE = 300.0  # seconds without a frame after which a link is closed: circuits cost both ends and Tor
QUIET = 60.0  # seconds between two signs of life on a link that is to tell soon whether the other end lives
TRIED_AFTER = 120.0  # seconds of silence after which one that is only to stay open is tried, at the next look
ACKNOWLEDGE_WITHIN = 30.0  # seconds; the link to a daemon that was killed may just fall silent
SLOWEST = 4096  # bytes a second of the slowest path that is worth waiting for
MAX_UNACKNOWLEDGED = 4 * 1024 * 1024  # bytes sent on a link before the next waits for an acknowledgement
MAX_UNROUTED = 16_384  # of one acknowledgement; a window full of the smallest messages has 4,000


class HopItem(Protocol):
    """What a hop carries: opaque here but for its size."""

    @property
    def size(self) -> int:
        """Bytes that it takes of window and queue."""


ItemT = TypeVar("ItemT", bound=HopItem)


class LinkState(Generic[ItemT]):
    """One link, in both directions. `now` is in seconds of any clock that nobody sets.

    Whoever drives it closes the link once `deadline` has passed.
    """

    # There is one for each open link, and most are idle.
    __slots__ = (
        "_acknowledged",
        "_heard_at",
        "_owed",
        "_unrouted",
        "deadline",
        "in_flight",
        "is_due",
        "taken",
        "unacknowledged",
    )

    def __init__(self, now: float) -> None:
        """Begin a link that has just opened."""
        self.unacknowledged: list[ItemT] | tuple[()] = ()
        """What was sent and not acknowledged, in order."""
        self.in_flight = 0
        """The bytes of that."""
        self._acknowledged = 0
        self.taken = 0
        """How many items of the other end's were taken over."""
        self._owed = 0  # of these, what the next acknowledgement names
        self._unrouted: tuple[int, ...] = ()
        self.is_due = False
        self.touch(now)

    def touch(self, now: float) -> None:
        """Put off the deadline: the other end was heard, or owes an acknowledgement from now on."""
        self._heard_at = now
        patience = IDLE
        if self.unacknowledged:
            patience = ACKNOWLEDGE_WITHIN + self.unacknowledged[0].size / SLOWEST
        self.deadline = now + patience

    def is_quiet(self, now: float) -> bool:
        """Tell whether the other end was silent for so long that it should show a sign of life."""
        return now - self._heard_at > TRIED_AFTER

    def send(self, items: Sequence[ItemT], size: int, now: float) -> None:
        """Put items of `size` bytes together into the window."""
        was_waiting = bool(self.unacknowledged)
        self.unacknowledged = self.unacknowledged or []
        self.unacknowledged += items
        self.in_flight += size
        if not was_waiting:
            self.touch(now)

    def acknowledge(self, number: int, unrouted: Iterable[int]) -> tuple[list[ItemT], list[ItemT]]:
        """Take the other end's acknowledgement; return what it took over, and what leads nowhere there."""
        waiting = self.unacknowledged or []
        answered = waiting[: max(0, number - self._acknowledged)]
        del waiting[: len(answered)]
        self.unacknowledged = waiting or ()
        self.in_flight -= sum([item.size for item in answered])
        first = self._acknowledged + 1
        self._acknowledged += len(answered)
        nowhere = set(unrouted)
        if not nowhere:  # as most often
            return answered, []
        taken: list[ItemT] = []
        refused: list[ItemT] = []
        for place, item in enumerate(answered, first):
            (refused if place in nowhere else taken).append(item)
        return taken, refused

    def is_fruitless(self) -> bool:
        """Tell whether the other end was sent items and acknowledged none."""
        return bool(self.unacknowledged) and not self._acknowledged

    def forget(self) -> None:
        """Empty the window: the link has ended."""
        self.unacknowledged = ()
        self.in_flight = 0

    def take_over(self, count: int, unrouted: Iterable[int] = ()) -> bool:
        """Take over `count` more items of the other end's; what is owed for them is another question.

        `unrouted` are the places among them, from 0, that lead nowhere here. Returns false where more of
        these wait than one acknowledgement holds: the other end sends on without reading, and the link is to
        close.
        """
        self._unrouted += tuple([self.taken + place + 1 for place in unrouted])
        self.taken += count
        return len(self._unrouted) <= MAX_UNROUTED

    def owe(self, taken: int = 0) -> None:
        """Owe an acknowledgement of what was taken over up to a place; if it is less than before, of that."""
        self._owed = max(self._owed, taken)
        self.is_due = True

    def due(self) -> tuple[int, tuple[int, ...]] | None:
        """Return the acknowledgement that is owed, number and unrouted places, and owe it no longer."""
        if not self.is_due:
            return None
        self.is_due = False
        unrouted: tuple[int, ...] = ()
        if self._unrouted:
            unrouted = tuple([place for place in self._unrouted if place <= self._owed])
            self._unrouted = self._unrouted[len(unrouted) :]
        return self._owed, unrouted
