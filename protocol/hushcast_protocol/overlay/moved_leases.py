"""Moved leases: which of a relay's leases were given another next hop, by the one that they had before."""

from __future__ import annotations

from hushcast_protocol.content.hops import Hop

MovedFrom = tuple[int, Hop, bytes]
"""Day, next hop of before, and mark."""


class MovedLeases:
    """An index of leases that have another next hop than before, kept in step by whoever holds them."""

    def __init__(self) -> None:
        self._by_mark: dict[MovedFrom, dict[Hop, int]] = {}  # each message that waits asks
        self._by_hop: dict[Hop, dict[bytes, None]] = {}

    def add(self, lease: bytes, moved: MovedFrom, hop: Hop) -> None:
        """Note that a lease, by its id, has the next hop `hop` now."""
        hops = self._by_mark.setdefault(moved, {})
        hops[hop] = hops.get(hop, 0) + 1
        self._by_hop.setdefault(moved[1], {})[lease] = None

    def remove(self, lease: bytes, moved: MovedFrom, hop: Hop) -> None:
        """Forget what `add` noted."""
        hops = self._by_mark[moved]
        hops[hop] -= 1
        if not hops[hop]:
            del hops[hop]
        if not hops:
            del self._by_mark[moved]
        leases = self._by_hop[moved[1]]
        del leases[lease]
        if not leases:
            del self._by_hop[moved[1]]

    def ways(self, moved: MovedFrom) -> list[Hop]:
        """Return the next hops that leases have now."""
        return list(self._by_mark.get(moved, ()))

    def left(self) -> list[Hop]:
        """Return the next hops that any lease had before."""
        return list(self._by_hop)

    def leases(self, before: Hop) -> list[bytes]:
        """Return the ids of the leases that had a next hop before."""
        return list(self._by_hop.get(before, ()))
