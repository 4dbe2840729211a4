"""Late routes: which drops that had no next hop at their origin still wait there for one, and how long.

What was published a moment before somebody subscribed arrives: its origins try again when leases come.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import msgspec

WAIT = 300.0  # seconds: a subscription over Tor is installed within two minutes
MAX_ELEMENTS_AWAITED = 65_536  # by all drops at one relay; 15 MB of memory. What came first gives way
MAX_WAITING_SIZE = 32 * 1024 * 1024  # bytes of their bodies on disk: an eighth of the spool


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    elements: tuple[bytes, ...]
    size: int
    until: float


class LateRoutes:
    """The drops of one relay that wait for a route, by a key of the caller's."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[bytes, _Waiting] = OrderedDict()  # in the order in which they lapse
        self._by_element: dict[bytes, list[bytes]] = {}  # their keys
        self._elements = 0
        self._size = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def wait(self, key: bytes, elements: tuple[bytes, ...], size: int, now: float) -> list[bytes]:
        """Have a drop of `size` bytes wait for one of the elements by which it enters the overlay.

        Returns the keys of those that give way to it, perhaps its own.
        """
        self._waiting[key] = _Waiting(elements, size, now + WAIT)
        for element in elements:
            self._by_element.setdefault(element, []).append(key)
        self._elements += len(elements)
        self._size += size
        gone = []
        while self._elements > MAX_ELEMENTS_AWAITED or self._size > MAX_WAITING_SIZE:
            gone.append(next(iter(self._waiting)))
            self._forget(gone[-1])
        return gone

    def take(self, elements: Iterable[bytes]) -> list[bytes]:
        """Return the keys of those that wait for one of a lease's elements; they wait no longer."""
        found = [key for element in elements for key in self._by_element.get(element, ())]
        found = list(dict.fromkeys(found))
        for key in found:
            self._forget(key)
        return found

    def lapse(self, now: float) -> list[bytes]:
        """Forget those that have waited long enough; return their keys."""
        gone = []
        for key, waiting in self._waiting.items():
            if waiting.until > now:
                break
            gone.append(key)
        for key in gone:
            self._forget(key)
        return gone

    def next_lapse(self) -> float:
        """Return when the first lapses; there is one."""
        return next(iter(self._waiting.values())).until

    def _forget(self, key: bytes) -> None:
        waiting = self._waiting.pop(key)
        self._size -= waiting.size
        self._elements -= len(waiting.elements)
        for element in waiting.elements:
            beside = self._by_element[element]
            beside.remove(key)  # as a rule the first: those that came first lapse first
            if not beside:
                del self._by_element[element]
