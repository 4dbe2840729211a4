"""The lease store: the leases of one relay, in memory to be decided by and on disk to outlive a restart."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec
import trio

from hushcast_overlay.relay.identity import Identity
from hushcast_protocol.base import observations
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Bytes16, Counter, RelayId, encode
from hushcast_protocol.content.hops import HOP_SIZE, Hop
from hushcast_protocol.overlay.hops import key_of
from hushcast_protocol.overlay.leases import (
    MAX_ELEMENTS,
    MAX_LEASES,
    MAX_TOMBSTONES,
    Elements,
    Install,
    Lease,
    LeaseBook,
    Withdraw,
)
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import AT_ONCE, Store, StoreError, record_reader

PRUNED_AT_ONCE = 1024  # elements of leases that one step prunes, and those of one lease more: 5 ms each

_LEASE = RecordKind(
    "lease",
    StateOwner.RELAY,
    holds="leases: routes of subscriptions",
    lifetime="until withdrawn, or their day has lapsed",
    bound=f"{MAX_LEASES:,}",
)
_TOMBSTONE = RecordKind(
    "tombstone",
    StateOwner.RELAY,
    holds="marks of leases that were withdrawn",
    lifetime="until their day has lapsed",
    bound=f"{MAX_LEASES + MAX_TOMBSTONES:,} with the leases",
)


_Hop = Annotated[bytes, msgspec.Meta(min_length=HOP_SIZE, max_length=HOP_SIZE)]


class _StoredLease(msgspec.Struct, frozen=True, array_like=True):
    """A lease as it lies in the store."""

    day: Counter
    hop: _Hop
    address: str | None
    elements: Elements
    mark: Bytes16
    bypass: Bytes16
    before: _Hop | None = None
    children: Annotated[tuple[RelayId, ...], msgspec.Meta(max_length=MAX_ELEMENTS)] = ()


_decode_lease = record_reader(_StoredLease, "lease")
_ID = 16  # bytes
_MAILBOX = b"m"  # what the next hop began with, where it was a mailbox


class LeaseStore:
    """The lease book of one relay, durable."""

    def __init__(self, identity: Identity, calendar: Calendar, context: Context) -> None:
        self.book = LeaseBook(identity.seed.public(), calendar, identity.filter_key.reveal())
        self._env = context.env
        self._store = context.store
        self._tracer = context.tracer

    async def load(self) -> None:
        """Read back what was held before a restart."""
        await restore(self._store, _LEASE, self._take_lease)
        await restore(
            self._store,
            _TOMBSTONE,
            lambda key, value: self.book.restore_tombstone(sized(key, _ID), number(value)),
        )

    def _take_lease(self, key: bytes, value: bytes) -> None:
        stored = _decode_lease(value)
        address = parse_address(stored.address) if stored.address is not None else None
        before = Hop(stored.before) if stored.before is not None else None
        held = (stored.elements, stored.mark, stored.bypass, before, stored.children)
        self.book.restore(Lease(sized(key, _ID), stored.day, Hop(stored.hop), address, *held))

    async def install(self, instruction: Install, paid: bool) -> Lease:
        """Hold a lease, durably on return; raises a `Refusal` or `PeerError` as the book does."""
        lease = self.book.install(instruction, self._env.now(), paid)
        await self.keep(lease)
        return lease

    async def keep(self, lease: Lease, *beside: Change) -> None:
        """Write a lease that the book has taken, and what belongs to it, in one commit."""
        await self._store.write(*beside, _record(lease))

    async def withdraw(self, instruction: Withdraw, paid: bool) -> None:
        """Drop a lease and keep its tombstone; raises a `Refusal` or `PeerError` as the book does."""
        lease_id, day = self.book.withdraw(instruction, self._env.now(), paid)
        self._tracer.observe(observations.Withdrawn(lease_id))
        await self._store.write(
            Change(_LEASE, lease_id, None), Change(_TOMBSTONE, lease_id, day.to_bytes(8, "big"))
        )

    async def prune(self, day: int, hop: Hop, trunk: bytes) -> int:
        """Drop the leases by which messages with this trunk go to `hop` on a day; return how many."""
        pruned = self.book.followed(day, hop, trunk)
        elements = 0
        for lease in pruned:
            if self.book.prune(lease):
                self._tracer.observe(observations.Pruned(lease.id, key_of(hop)))
                self._store.write_soon(Change(_LEASE, lease.id, None))
            if (elements := elements + len(lease.elements)) >= PRUNED_AT_ONCE:
                elements = 0
                await trio.lowlevel.checkpoint()
        await self._store.write()
        return len(pruned)

    async def settle(self, leases: list[bytes], before: Hop) -> None:
        """Note, durably on return, that what waited for a next hop of before has followed leases, by id."""
        for begin in range(0, len(leases), AT_ONCE):
            for name in leases[begin : begin + AT_ONCE]:
                if (lease := self.book.settle(name, before)) is not None:
                    self._store.write_soon(_record(lease))
            await trio.lowlevel.checkpoint()
        await self._store.write()

    async def lapse(self) -> None:
        """Forget what belongs to days gone by; whoever calls is certain that they are."""
        for gone in self.book.lapse(self._env.now()):
            for lease in gone:
                self._store.write_soon(Change(_LEASE, lease, None), Change(_TOMBSTONE, lease, None))
            await trio.lowlevel.checkpoint()


async def leases_without_hop(store: Store) -> list[Change]:
    """Return what deletes the leases that led to mailboxes, of which there are none any more."""
    gone = []
    for key, value in await store.scan(_LEASE):
        with suppress(StoreError):  # what is damaged is set aside when it is loaded
            if _decode_lease(value).hop[:1] == _MAILBOX:
                gone.append(Change(_LEASE, key, None))
    return gone


def _record(lease: Lease) -> Change:
    held = (lease.elements, lease.mark, lease.bypass, lease.before, lease.children)
    return Change(_LEASE, lease.id, encode(_StoredLease(lease.day, lease.hop, lease.address, *held)))
