"""Late routes: which drops still wait at their origin for leases that are on their way, and how long.

What was published a moment before somebody subscribed arrives: its origins send it to the next hop of each
lease that comes, whether or not it had another one before. So nobody can tell by what comes to it whether
it is the first that subscribes.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import islice

import msgspec

from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.late_turns import LateTurns

WAIT = 300.0  # seconds: a subscription over Tor is installed within two minutes
MAX_ELEMENTS_AWAITED = 65_536  # by all drops at one relay; 15 MB of memory. What came first gives way
MAX_WAITING_SIZE = 32 * 1024 * 1024  # bytes of their bodies on disk: an eighth of what the spool has
MAX_LATE_A_LEASE = 1024  # drops that one lease gets late: three a second of its topic at one relay
LAPSE_AT_ONCE = 1024  # drops that lapse in one step: some 5 ms


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    elements: tuple[bytes, ...]
    size: int
    until: float


class LateRoutes:
    """The drops of one relay that wait for routes, by a key of the caller's.

    They go in the order in which they came: each is the first of all that wait for the same.
    """

    def __init__(self) -> None:
        self.turns = LateTurns()
        """Those that leases have come for, and when each goes."""
        self._waiting: OrderedDict[bytes, _Waiting] = OrderedDict()
        self._by_element: dict[bytes, deque[bytes]] = {}  # their keys
        self._elements = 0
        self._size = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def __contains__(self, key: bytes) -> bool:
        return key in self._waiting

    def wait(self, key: bytes, elements: tuple[bytes, ...], size: int, now: float) -> list[bytes]:
        """Have a drop of `size` bytes wait for routes of the elements by which it enters the overlay.

        Returns the keys of those that give way to it, perhaps its own.
        """
        self._waiting[key] = _Waiting(elements, size, now + WAIT)
        for element in elements:
            if (beside := self._by_element.get(element)) is None:
                beside = self._by_element[element] = deque()
            beside.append(key)
        self._elements += len(elements)
        self._size += size
        gone = []
        while self._elements > MAX_ELEMENTS_AWAITED or self._size > MAX_WAITING_SIZE:
            gone.append(self.forget_first())
        return gone

    def waiting(self, elements: Iterable[bytes]) -> list[bytes]:
        """Return the keys of those that wait for one of a lease's elements, in their order.

        They go on waiting. Of more than `MAX_LATE_A_LEASE` it returns those that came last.
        """
        asked, most = dict.fromkeys(elements), MAX_LATE_A_LEASE
        last = [[*islice(reversed(self._by_element.get(element, ())), most)] for element in asked]
        found = dict.fromkeys([key for keys in last for key in reversed(keys)])
        return sorted(found, key=lambda key: self._waiting[key].until)[-MAX_LATE_A_LEASE:]

    def take_up(self, elements: Iterable[bytes], hop: Hop, due: float) -> None:
        """Have what waits for one of a lease's elements go to its next hop, at `due` at the earliest."""
        self.turns.add(self.waiting(elements), hop, due)

    def lapse(self, now: float) -> list[bytes]:
        """Forget those that have waited long enough, `LAPSE_AT_ONCE` at most; return their keys."""
        gone: list[bytes] = []
        while self._waiting and self.next_lapse() <= now and len(gone) < LAPSE_AT_ONCE:
            gone.append(self.forget_first())
        return gone

    def next_lapse(self) -> float:
        """Return when the first lapses; there is one."""
        return next(iter(self._waiting.values())).until

    def forget_first(self) -> bytes:
        """Forget the one that has waited longest; return its key."""
        key, waiting = self._waiting.popitem(last=False)
        self.turns.forget(key)
        self._size -= waiting.size
        self._elements -= len(waiting.elements)
        for element in waiting.elements:
            beside = self._by_element[element]
            beside.popleft()
            if not beside:
                del self._by_element[element]
        return key
