"""Parcels: opens them, carries out their instructions durably, and passes on what they hold for others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from hushcast_overlay.relay.admission_control import counted_refusal
from hushcast_overlay.relay.identity import Identity
from hushcast_overlay.relay.lease_store import LeaseStore
from hushcast_overlay.relay.parcel_forwarding import ParcelForwarding, ParcelPeers
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base import observations
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWorkCheck
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.overlay.confirmations import confirm
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import ParcelAnswer
from hushcast_protocol.overlay.hops import key_of
from hushcast_protocol.overlay.lane_holds import LaneHold
from hushcast_protocol.overlay.leases import Lease, Withdraw
from hushcast_protocol.overlay.parcels import Parcel, ParcelMemory, instructed, open_parcel, price
from hushcast_runtime.context import Context
from hushcast_runtime.few_at_once import FewAtOnce
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized
from hushcast_runtime.storage.store import AT_ONCE

_PARCEL = RecordKind(
    "parcel",
    StateOwner.RELAY,
    holds="digests of parcels that were opened",
    lifetime="three epochs",
)


class Parcels:
    """The parcels that one relay is handed."""

    def __init__(
        self,
        identity: Identity,
        shards: Shards,
        leases: LeaseStore,
        others: ParcelPeers,
        installed: Callable[[Lease], None],
        hold_lane: Callable[[LaneHold, bool], Awaitable[None]],
        context: Context,
    ) -> None:
        """`installed` hears of each lease that is held from now on, and was not so before.

        `hold_lane` does what the owner of a box asks, which may be paid for; it raises as `install` does.
        """
        self._relay = identity.seed.public()
        self._parcel_key = identity.parcel_key
        self._shards = shards
        self._leases = leases
        self._installed = installed
        self._hold_lane = hold_lane
        self._passing = ParcelForwarding(shards, others)
        self._env = context.env
        self._store = context.store
        self._counters = context.counters
        self._tracer = context.tracer
        self._seen = ParcelMemory()
        self._stamps = ProofOfWorkCheck(self._relay)
        self._turn = FewAtOnce()

    async def load(self) -> None:
        """Read back which were seen before a restart."""
        await restore(
            self._store, _PARCEL, lambda key, value: self._seen.restore(sized(key, 32), number(value))
        )

    def fullness(self) -> float:
        """Return which share (0 to 1) is taken of the room in which those seen are remembered."""
        return self._seen.fullness()

    async def lapse(self) -> None:
        """Forget those of epochs gone by; whoever calls is certain that they are."""
        forgotten = self._seen.forget(self._shards.calendar.epoch(self._env.now()))
        for begin in range(0, len(forgotten), AT_ONCE):
            step = forgotten[begin : begin + AT_ONCE]
            self._store.write_soon(*(Change(_PARCEL, parcel, None) for parcel in step))
            await trio.lowlevel.checkpoint()

    async def take(self, sealed: bytes, previous: bytes) -> ParcelAnswer:
        """Carry out a parcel's instruction, then pass on its parcels; answer when both are done.

        `previous` is the relay that handed it in, or `ORIGIN` where it was dropped. Once it is open only what
        it holds is kept: whoever awaits this is not to keep `sealed` either.
        """
        try:
            async with self._turn:  # one a turn of the scheduler: a burst is in nobody's way
                parcel, paid = self._open(sealed)
        except PeerError:
            self._counters.add("refused_form")
            return ParcelAnswer(0, "form", ())
        except Refusal as refusal:
            return self._refused(refusal)
        self._tracer.observe(observations.Parcel(len(sealed), len(parcel.onward)))
        size = len(sealed)
        del sealed
        try:
            with self._passing.reserve(parcel, previous) as passage:
                await self._carry_out(parcel, previous, paid)
                self._counters.add("parcels_opened")
                below = await passage.run()
                confirmations = confirm(parcel.word, below, size, self._env.randomness)
                return ParcelAnswer(0, None, confirmations)
        except PeerError:
            self._counters.add("refused_form")
            return ParcelAnswer(0, "form", ())
        except Refusal as refusal:
            return self._refused(refusal)

    def _open(self, sealed: bytes) -> tuple[Parcel, bool]:
        """Return a parcel that is seen for the first time, and whether the stamp inside holds."""
        epoch = self._shards.calendar.epoch(self._env.now())
        network = self._shards.network.id
        parcel = open_parcel(sealed, self._parcel_key, network, self._relay, epoch)
        paid = self._is_paid(parcel, epoch)
        name, last = self._seen.note(sealed, epoch, paid)
        self._store.write_soon(Change(_PARCEL, name, last.to_bytes(8, "big")))
        return parcel, paid

    def _is_paid(self, parcel: Parcel, epoch: int) -> bool:
        """Tell whether the stamp inside holds, at the least that whoever made it was asked for."""
        if parcel.stamp is None:  # as a rule
            return False
        asked = price(parcel.instruction, self._shards.least_price(self._relay))
        return bool(asked) and self._stamps.spend(parcel.stamp, instructed(parcel.instruction), epoch, asked)

    def _refused(self, refusal: Refusal) -> ParcelAnswer:
        return ParcelAnswer(0, counted_refusal(refusal, self._counters), ())

    async def _carry_out(self, parcel: Parcel, previous: bytes, paid: bool) -> None:
        if parcel.instruction is None:
            return
        if isinstance(parcel.instruction, Withdraw):
            await self._leases.withdraw(parcel.instruction, paid)
            return
        if isinstance(parcel.instruction, LaneHold):
            await self._hold_lane(parcel.instruction, paid)
            return
        held = self._leases.book.get(parcel.instruction.lease)
        lease = await self._leases.install(parcel.instruction, paid)
        if lease is not held:
            self._installed(lease)
        self._tracer.observe(
            observations.Installed(
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
            self._tracer.observe(observations.Passed(lease.id, onward.relay))
