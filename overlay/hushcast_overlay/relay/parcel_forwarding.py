"""Forwards what parcels hold for other relays, within a cap and at a pace, while somebody waits for it."""

from __future__ import annotations

from collections import Counter
from typing import Protocol, TypeVar

import trio

from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.errors import HushcastError, Refusal
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.confirmations import heard
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import ParcelAnswer
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.parcels import OnwardParcel, Parcel
from hushcast_runtime.few_at_once import FewAtOnce

MAX_UNDER_WAY = 2048  # parcels passed on and not answered yet, in all; some 20 MB of tasks
STRANGERS_SHARE = MAX_UNDER_WAY // 2  # of them for what was dropped here, by whomever
RELAYS_SHARE = MAX_UNDER_WAY // 4  # of them for what one relay handed in
# Bytes of parcels that hold something for others, until all of it is answered: 128 of the largest.
MAX_UNDER_WAY_BYTES = 64 * 1024 * 1024
STRANGERS_BYTES = MAX_UNDER_WAY_BYTES // 2  # of them in what was dropped here
RELAYS_BYTES = MAX_UNDER_WAY_BYTES // 4  # of them in what one relay handed in
# Of all these for one next hop: one that does not answer, or whose link is slow, holds up no other.
ONE_HOPS_SHARE = STRANGERS_SHARE // 8  # parcels
ONE_HOPS_BYTES = STRANGERS_BYTES // 8
PACE = 0.01  # seconds between two that need a new link: first contact takes 2 ms of the processor at each end

KeyT = TypeVar("KeyT")


class ParcelPeers(Protocol):
    """The other relays, as one that passes parcels on needs them."""

    def is_linked(self, hop: Hop) -> bool:
        """Tell whether a link to a relay is open."""

    async def request(self, relay: Hop, sealed: bytes, patience: float) -> ParcelAnswer:
        """Hand a sealed parcel to a relay and wait so many seconds; raise a `HushcastError`."""


class ParcelForwarding:
    """The parcels that one relay is passing on."""

    def __init__(self, shards: Shards, others: ParcelPeers) -> None:
        self._shards = shards
        self._others = others
        self._under_way: Counter[bytes] = Counter()  # by who handed them in
        self._bytes: Counter[bytes] = Counter()
        self._to: Counter[tuple[bytes, RelayId]] = Counter()  # by who handed them in, and for whom they are
        self._bytes_to: Counter[tuple[bytes, RelayId]] = Counter()
        self._turn = FewAtOnce()  # who leaves the queue for it delays nobody

    def __len__(self) -> int:
        """Return how many parcels are under way."""
        return self._under_way.total()

    @property
    def size(self) -> int:
        """The bytes that are held for them."""
        return self._bytes.total()

    def reserve(self, parcel: Parcel, previous: bytes) -> Passage:
        """Take room for all that a parcel from `previous` (a relay's key, or `ORIGIN`) holds for others.

        Raises `Refusal` ("quota") where there is too little.
        """
        share, most = (RELAYS_SHARE, RELAYS_BYTES)
        if previous == ORIGIN:
            share, most = (STRANGERS_SHARE, STRANGERS_BYTES)
        listed = [onward for onward in parcel.onward if self._shards.relay(onward.relay) is not None]
        size = sum(len(onward.sealed) for onward in parcel.onward)
        if self._under_way[previous] + len(listed) > share or len(self) + len(listed) > MAX_UNDER_WAY:
            raise Refusal("quota")
        if self._bytes[previous] + size > most or self.size + size > MAX_UNDER_WAY_BYTES:
            raise Refusal("quota")
        for onward in listed:
            hop = previous, onward.relay
            if self._to[hop] >= ONE_HOPS_SHARE or self._bytes_to[hop] + len(onward.sealed) > ONE_HOPS_BYTES:
                raise Refusal("quota")
        for onward in listed:
            self._to[previous, onward.relay] += 1
            self._bytes_to[previous, onward.relay] += len(onward.sealed)
        self._under_way[previous] += len(listed)
        self._bytes[previous] += size
        return Passage(self, parcel, previous, listed, size)

    def answered(self, previous: bytes, onward: OnwardParcel) -> None:
        """Give back the room of one that nobody waits for any more, but for its bytes."""
        hop = previous, onward.relay
        _take_off(self._under_way, previous, 1)
        _take_off(self._to, hop, 1)
        _take_off(self._bytes_to, hop, len(onward.sealed))

    def forgotten(self, previous: bytes, size: int) -> None:
        """Give back the bytes of a whole parcel."""
        _take_off(self._bytes, previous, size)

    async def send(self, onward: OnwardParcel, patience: float) -> tuple[bytes, ...]:
        """Pass one on, in its turn where a link is to be opened; return the confirmations from there."""
        hop = relay_hop(onward.relay)
        if not self._others.is_linked(hop):
            async with self._turn:
                await trio.sleep(PACE)
        try:
            answer = await self._others.request(hop, onward.sealed, patience)
        except HushcastError:
            return ()
        return heard(answer.confirmations, len(onward.sealed)) if answer.refused is None else ()


def _take_off(held: Counter[KeyT], key: KeyT, amount: int) -> None:
    held[key] -= amount
    if not held[key]:
        del held[key]


class Passage:
    """What one parcel holds for other relays, with the room reserved for it until it is left."""

    def __init__(
        self,
        passing: ParcelForwarding,
        parcel: Parcel,
        previous: bytes,
        listed: list[OnwardParcel],
        size: int,
    ) -> None:
        self._passing = passing
        self._parcel = parcel
        self._previous = previous
        self._waiting = {onward.relay: onward for onward in listed}
        self._size = size

    def __enter__(self) -> Passage:
        return self

    def __exit__(self, *_: object) -> None:
        for onward in self._waiting.values():
            self._passing.answered(self._previous, onward)
        self._passing.forgotten(self._previous, self._size)

    async def run(self) -> list[bytes]:
        """Pass on all; return the confirmations from below.

        Where no roster lists a relay nothing is tried: its address is nowhere.
        """
        confirmations: list[bytes] = []

        async def send(onward: OnwardParcel) -> None:
            confirmations.extend(await self._passing.send(onward, self._parcel.patience))
            self._passing.answered(self._previous, self._waiting.pop(onward.relay))

        if not self._waiting:  # as at half of the relays of a tree
            return confirmations
        async with trio.open_nursery() as nursery:
            for onward in tuple(self._waiting.values()):
                nursery.start_soon(send, onward)
                await trio.lowlevel.checkpoint()  # others go on between two tasks that begin
        return confirmations
