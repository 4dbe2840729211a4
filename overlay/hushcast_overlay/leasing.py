"""Leasing: opens parcels, carries out their instructions durably, and passes on what they hold for others."""

from __future__ import annotations

import msgspec
import trio

from hushcast_overlay.identity import Identity
from hushcast_overlay.passing import PassingOn, PassOn
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.base import observed
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.stamps import StampCheck
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import ParcelAnswer, Reason
from hushcast_protocol.overlay.hops import Hop, key_of
from hushcast_protocol.overlay.leases import Lease, LeaseBook, Withdraw
from hushcast_protocol.overlay.parcels import Parcel, ParcelMemory, instructed, open_parcel, price
from hushcast_runtime.context import Context
from hushcast_runtime.store import Change, record_reader

_LEASE, _TOMBSTONE, _PARCEL = "lease", "tombstone", "parcel"


class _StoredLease(msgspec.Struct, frozen=True, array_like=True):
    """A lease as it lies in the store."""

    day: int
    hop: bytes
    address: str | None
    elements: tuple[bytes, ...]
    mark: bytes
    bypass: bytes
    before: bytes | None = None


_decode_lease = record_reader(_StoredLease, "lease")


class Leasing:
    """The leases of one relay, from parcels to the store."""

    def __init__(
        self,
        identity: Identity,
        rosters: RosterKeeper,
        pass_on: PassOn,
        context: Context,
    ) -> None:
        self._relay = identity.seed.public()
        self._parcel_key = identity.parcel_key
        self.book = LeaseBook(self._relay, rosters.calendar, identity.filter_key.reveal())
        self._rosters = rosters
        self._passing = PassingOn(rosters, pass_on)
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._tracer = context.tracer
        self._seen = ParcelMemory()
        self._stamps = StampCheck(self._relay)
        self._turn = trio.Lock()
        self.installed = trio.lowlevel.ParkingLot()
        """Wakes who waits for a lease to be installed."""

    async def load(self) -> None:
        """Read back what was held before a restart."""
        for key, value in await self._store.scan(_LEASE):
            stored = _decode_lease(value)
            address = Address(stored.address) if stored.address is not None else None
            before = Hop(stored.before) if stored.before is not None else None
            self.book.restore(
                Lease(
                    key,
                    stored.day,
                    Hop(stored.hop),
                    address,
                    stored.elements,
                    stored.mark,
                    stored.bypass,
                    before,
                )
            )
        for key, value in await self._store.scan(_TOMBSTONE):
            self.book.restore_tombstone(key, int.from_bytes(value, "big"))
        for key, value in await self._store.scan(_PARCEL):
            self._seen.restore(key, int.from_bytes(value, "big"))

    def fullness(self) -> float:
        """Return which share (0 to 1) is taken of the room for what is kept for days."""
        return max(self.book.fullness(), self._seen.fullness())

    def lapse(self) -> None:
        """Forget what belongs to days and epochs gone by, where it is certain that they are."""
        now = self._env.now()
        if not self._env.is_certain():
            return
        changes = []
        for lease in self.book.lapse(now):
            changes += [Change(_LEASE, lease, None), Change(_TOMBSTONE, lease, None)]
        for parcel in self._seen.forget(self._rosters.calendar.epoch(now)):
            changes.append(Change(_PARCEL, parcel, None))
        self._store.write_soon(*changes)

    async def prune(self, day: int, hop: Hop, trunk: bytes) -> int:
        """Drop the leases by which messages with this trunk go to `hop` on a day; return how many."""
        pruned = self.book.followed(day, hop, trunk)
        for lease in pruned:
            self.book.prune(lease)
            self._tracer.observe(observed.Pruned(lease.id, key_of(hop)))
        await self._store.write(*(Change(_LEASE, lease.id, None) for lease in pruned))
        return len(pruned)

    async def take_parcel(self, sealed: bytes, previous: bytes) -> ParcelAnswer:
        """Carry out a parcel's instruction, then pass on its parcels; answer when both are done.

        `previous` is the relay that handed it in, or `ORIGIN` where it was dropped.
        """
        try:
            async with self._turn:  # one a turn of the scheduler: a burst is in nobody's way
                parcel, paid = self._open(sealed)
        except PeerError:
            self._counters.add("refused_form")
            return ParcelAnswer(0, "form", ())
        except Refusal as refusal:
            return self._refused(refusal, ())
        self._tracer.observe(observed.Parcel(len(sealed), len(parcel.onward)))
        below = tuple(onward.relay for onward in parcel.onward)
        try:
            with self._passing.reserve(parcel, previous) as passage:
                await self._carry_out(parcel, previous, paid)
                self._counters.add("parcels_opened")
                return ParcelAnswer(0, None, await passage.run())
        except PeerError:
            self._counters.add("refused_form")
            return ParcelAnswer(0, "form", below)
        except Refusal as refusal:
            return self._refused(refusal, below)

    def _open(self, sealed: bytes) -> tuple[Parcel, bool]:
        """Return a parcel that is seen for the first time, and whether the stamp inside holds."""
        epoch = self._rosters.calendar.epoch(self._env.now())
        network = self._rosters.network.id
        parcel = open_parcel(sealed, self._parcel_key, network, self._relay, epoch)
        paid = self._is_paid(parcel, epoch)
        name, last = self._seen.note(sealed, epoch, paid)
        self._store.write_soon(Change(_PARCEL, name, last.to_bytes(8, "big")))
        return parcel, paid

    def _is_paid(self, parcel: Parcel, epoch: int) -> bool:
        """Tell whether the stamp inside holds, at the least that whoever made it was asked for."""
        asked = price(parcel.instruction, self._rosters.least_price(self._relay))
        if parcel.stamp is None or not asked:
            return False
        return self._stamps.spend(parcel.stamp, instructed(parcel.instruction), epoch, asked)

    def _refused(self, refusal: Refusal, below: tuple[RelayId, ...]) -> ParcelAnswer:
        counter = f"refused_{refusal.reason}" if refusal.reason in ("day", "quota") else "refused_other"
        self._counters.add(counter)
        reason: Reason = "quota"
        if refusal.reason in ("day", "withdrawn"):
            reason = refusal.reason  # type: ignore[assignment]
        return ParcelAnswer(0, reason, below)

    async def _carry_out(self, parcel: Parcel, previous: bytes, paid: bool) -> None:
        instruction = parcel.instruction
        if isinstance(instruction, Withdraw):
            lease_id, day = self.book.withdraw(instruction, self._env.now(), paid)
            self._tracer.observe(observed.Withdrawn(lease_id))
            await self._store.write(
                Change(_LEASE, lease_id, None), Change(_TOMBSTONE, lease_id, day.to_bytes(8, "big"))
            )
            return
        lease = self.book.install(instruction, self._env.now(), paid)
        stored = _StoredLease(
            lease.day, lease.hop, lease.address, lease.elements, lease.mark, lease.bypass, lease.before
        )
        await self._store.write(Change(_LEASE, lease.id, encode(stored)))
        self.installed.unpark_all()
        self._tracer.observe(
            observed.Installed(
                lease.id,
                lease.mark,
                lease.day,
                key_of(lease.hop),
                None if previous == ORIGIN else previous,
                len(lease.elements),
                len(parcel.onward),
            )
        )
        for onward in parcel.onward:
            self._tracer.observe(observed.Passed(lease.id, onward.relay))
