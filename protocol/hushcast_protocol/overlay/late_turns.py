"""Late turns: which waiting drop goes next to the next hops of leases that came after it.

In its turn a drop goes to all next hops that it is due for, so a flood of leases of one topic takes no more
turns than one lease. Where more are due than there are turns, the drop that had the fewest goes first, and of
those the one that is due longest: who floods a relay with drops and leases gets to each of his a few times,
and not before each of theirs had as many. A drop is what strangers are admitted by, and pay for under load;
leases, next hops and topics are as many as they like.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from math import inf

from hushcast_protocol.content.hops import Hop

MAX_HOPS_A_TURN = 80  # next hops that one drop is to go to late: so many copies are 1 ms of a processor
MAX_LATE_COPIES = 131_072  # drops and next hops that are due, at one relay: 15 MB with all that holds them
_MANY = 16  # turns: who had so many or more stand in one line
_Routes = dict[Hop, float]  # since when each is due: seconds


class LateTurns:
    """The drops of one relay that are to go late, by keys of the caller's."""

    def __init__(self) -> None:
        self._routes: dict[bytes, _Routes] = {}
        self._coming: list[tuple[float, int, list[bytes]]] = []  # a heap of what is not due yet, as it came
        self._numbers = count()
        self._due: list[dict[bytes, None]] = [{} for _ in range(_MANY + 1)]  # lines, by the turns they had
        self._had: dict[bytes, int] = {}  # turns, of those that had some
        self._copies = 0

    def __len__(self) -> int:
        """Return how many drops are to go."""
        return len(self._routes)

    def add(self, keys: Iterable[bytes], hop: Hop, due: float) -> None:
        """Have drops go to a next hop at `due` (seconds), or with what each is due for already.

        Where there is no room for all, those that had the most turns stay away.
        """
        coming = []
        for key in keys:
            routes = self._routes.get(key)
            if routes is not None and (hop in routes or len(routes) >= MAX_HOPS_A_TURN):
                continue
            if self._copies >= MAX_LATE_COPIES and not self._gives_way(key):
                continue
            if routes is None:
                routes = self._routes[key] = {}
                coming.append(key)
            routes[hop] = due
            self._copies += 1
        self._push(due, coming)

    def deadline(self) -> float:
        """Return when the next is due; there is one."""
        return 0.0 if any(self._due) else self._coming[0][0]

    def next(self, now: float) -> tuple[bytes, list[Hop]] | None:
        """Return whose turn it is, and where it is to go; none if none is due."""
        while self._coming and self._coming[0][0] <= now:
            _, _, keys = heapq.heappop(self._coming)
            for key in keys:
                if min(self._routes.get(key, {}).values(), default=inf) <= now:  # or it was forgotten
                    self._line(key)[key] = None
        for line in self._due:
            if line:
                return self._turn(next(iter(line)), now)
        return None

    def forget(self, key: bytes) -> None:
        """Forget a drop, which waits no more, and its turns."""
        self._copies -= len(self._routes.pop(key, ()))
        self._line(key).pop(key, None)
        self._had.pop(key, None)

    def _push(self, due: float, keys: list[bytes]) -> None:
        if keys:
            heapq.heappush(self._coming, (due, next(self._numbers), keys))

    def _line(self, key: bytes) -> dict[bytes, None]:
        return self._due[min(self._had.get(key, 0), _MANY)]

    def _turn(self, key: bytes, now: float) -> tuple[bytes, list[Hop]]:
        del self._line(key)[key]
        routes = self._routes.pop(key)
        hops = [hop for hop, due in routes.items() if due <= now]
        later = {hop: due for hop, due in routes.items() if due > now}
        if later:
            self._routes[key] = later
            self._push(min(later.values()), [key])
        self._copies -= len(hops)
        self._had[key] = self._had.get(key, 0) + 1
        return key, hops

    def _gives_way(self, key: bytes) -> bool:
        """Tell whether one that had more turns than a drop gives way to it; it goes to none of its hops."""
        for turns in range(_MANY, self._had.get(key, 0), -1):
            if line := self._due[turns]:
                other = next(iter(line))
                del line[other]
                self._copies -= len(self._routes.pop(other))
                return True
        return False
