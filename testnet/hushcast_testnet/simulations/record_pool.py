"""The pool of records: what all daemons of a simulation make of the same bytes is made once, and held once.

Real daemons check each roster and each slice themselves, and have disks of their own. In one process that is
the same value ten thousand times.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from hushcast_directory.client.pinned_directories import RosterChecks
from hushcast_overlay.shards.shard_reader import ShardReader, guides_of, read_shown
from hushcast_protocol.authorities.head_answers import roster_of
from hushcast_protocol.base.roster import Relay, Roster, check_roster
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.neighbours import roster_of_shard
from hushcast_protocol.shards.slices import Leaf
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

_ROSTERS_HELD = 64  # whole rosters that are remembered: those of some epochs, each as signed by whoever did
_SLICES_HELD = 256  # slices that are remembered; who fetches one later, checks it again
_RECALLED = 4096  # rosters of shards that are remembered
_LEAST_SHARED = 1024  # bytes of a record that is held once; smaller ones are each daemon's own


def shared_checks() -> RosterChecks:
    """Return checks of rosters that are each done once."""
    remember = functools.lru_cache(_ROSTERS_HELD)
    return RosterChecks(remember(check_roster), remember(roster_of))


def shared_reading() -> ShardReader:
    """Return readings of slices and leaves that are each done once."""
    return ShardReader(functools.lru_cache(_SLICES_HELD)(read_shown), _Rosters().make, _Guides().drawn)


class _Rosters:
    """Rosters of shards by what they are made of, which is kept with them."""

    def __init__(self) -> None:
        self._made: dict[object, tuple[Mapping[RelayId, Relay], Roster | None, Roster]] = {}

    def make(self, seated: Mapping[RelayId, Relay], leaf: Leaf, head: Roster, last: Roster | None) -> Roster:
        key = (id(seated), leaf, head.epoch, head.digest, id(last))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = seated, last, roster_of_shard(seated, leaf, head, last)
            if len(self._made) > _RECALLED:
                del self._made[next(iter(self._made))]
        return found[2]


class _Guides:
    """Who guides to shards, by their slices, each of which is kept with them."""

    def __init__(self) -> None:
        self._drawn: dict[object, tuple[Mapping[RelayId, Relay], frozenset[RelayId]]] = {}

    def drawn(self, beacon: bytes, seated: Mapping[RelayId, Relay]) -> frozenset[RelayId]:
        key = (beacon, id(seated))
        found = self._drawn.get(key)
        if found is None:
            found = self._drawn[key] = seated, guides_of(beacon, seated)
            if len(self._drawn) > _SLICES_HELD:
                del self._drawn[next(iter(self._drawn))]
        return found[1]


class Pool:
    """Large records, each held once for all the stores that have it."""

    def __init__(self) -> None:
        self._held: dict[bytes, bytes] = {}
        self._holders: dict[bytes, int] = {}

    def take(self, value: bytes) -> bytes:
        """Return the one copy of a record that another store has from now on."""
        held = self._held.setdefault(value, value)
        self._holders[held] = self._holders.get(held, 0) + 1
        return held

    def give(self, value: bytes) -> None:
        """Note that a store has it no more."""
        self._holders[value] -= 1
        if not self._holders[value]:
            del self._holders[value], self._held[value]

    @property
    def bytes(self) -> int:
        """Bytes of all records that are held."""
        return sum(map(len, self._held))


class PooledStore(MemoryStore):
    """A store in memory whose large records are in a pool."""

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def write_soon(self, *changes: Change) -> None:
        """Make changes."""
        for change in changes:
            before = self._records.get(change.kind, {}).get(change.key)
            value = change.value
            if isinstance(value, bytes) and len(value) >= _LEAST_SHARED:
                value = self._pool.take(value)
            super().write_soon(Change(change.kind, change.key, value))
            if isinstance(before, bytes) and len(before) >= _LEAST_SHARED:
                self._pool.give(before)
