"""Ready slots: relays drawn for a time, for what will be handed in; when one is drawn, and which is taken.

A slot is a relay and not a connection: it counts whether or not a connection to it lives, so nobody who ends
connections at honest relays chooses where messages go. Slots are drawn as a Poisson process, which depends on
nothing: not on what was taken, failed or ended. Which is taken is drawn at random: the oldest one first would
show to the relay behind the next how much was handed in lately.

A daemon that has just started has no slots, or young ones. So that this does not tell its start, each set of
slots rests at a start, and again and again: while it rests slots open as ever, and none is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from hushcast_protocol.base.wire import RelayId

SHORTEST, LONGEST = 0.4, 1.6  # of the mean time that a slot stays: 30 and 120 minutes of 75

LEAST_REST = 0.4  # of that time: half an hour
WORKS = 49.0  # times as long as it rests a set works: of fifty publications one finds it at rest
WORKING = WORKS / (1 + WORKS)


@dataclass(frozen=True)
class ReadyRule:
    """How many slots a daemon holds, and for how long."""

    slots: float = 0.0
    """That are open in the mean where nothing takes them; 0: none."""
    stays: float = 4500.0
    """Seconds that one stays in the mean."""

    def beside(self, taken: float) -> ReadyRule:
        """Return the rule of a set of which messages take so many slots a second: as many are left.

        How many that are is to be known to all, as the rate of probes is: then slots open as often whatever
        becomes of them, and what finds one says as little as what takes one a day.
        """
        return replace(self, slots=self.slots + taken * self.stays * WORKING) if self.slots else self

    def pause(self, share: float) -> float:
        """Return the seconds until the next slot; `share` is drawn from 0 to below 1. There are slots."""
        return -math.log1p(-share) * self.stays / self.slots

    def stay(self, share: float) -> float:
        """Return the seconds that one stays; `share` is as with `pause`."""
        return self.stays * (SHORTEST + (LONGEST - SHORTEST) * share)

    def rest(self, share: float) -> float:
        """Return the seconds that a set rests; `share` is as with `pause`."""
        return self.stays * (LEAST_REST - math.log1p(-share))

    def work(self, share: float) -> float:
        """Return the seconds until it rests again; `share` is as with `pause`."""
        return -self.stays * WORKS * (LEAST_REST + 1) * math.log1p(-share)


NONE_READY = ReadyRule()


@dataclass(eq=False)
class ReadySlot:
    """A relay drawn for a time."""

    relay: RelayId
    ends: float
    """By the clock that it was opened by, in seconds."""


SlotT = TypeVar("SlotT", bound=ReadySlot)


class ReadySlots(Generic[SlotT]):
    """The slots of one stream of messages that were not taken. It rests at first."""

    __slots__ = ("_open", "rests")

    def __init__(self) -> None:
        self._open: list[SlotT] = []
        self.rests = True
        """Whether none is taken for a while."""

    def open(self, slot: SlotT) -> None:
        """Hold a slot until it ends or is taken."""
        self._open.append(slot)

    def lapse(self, now: float) -> None:
        """Forget the slots that have ended."""
        self._open = [slot for slot in self._open if slot.ends > now]

    def take(self, allowed: Collection[RelayId], now: float, below: Callable[[int], int]) -> SlotT | None:
        """Draw one of those at `allowed` relays, for one message alone; `None` where there is none.

        `below` draws a whole number from 0 to below its argument. As relays were drawn uniformly, what is
        taken is uniform over `allowed`, and so is a draw among these where nothing is taken.
        """
        self.lapse(now)
        held = [] if self.rests else [slot for slot in self._open if slot.relay in allowed]
        if not held:
            return None
        taken = held[below(len(held))]
        self._open.remove(taken)
        return taken
