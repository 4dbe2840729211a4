"""Parcels in letters: a third hands each to the relay that it is for, as whoever drops one would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import trio

from hushcast_overlay.relay.cover.cover_means import CoverMeans
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.round_robin import RoundRobin
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.frame_directions import decode_parcel_answer
from hushcast_protocol.overlay.frames import ParcelFrame
from hushcast_protocol.overlay.letter_errands import GiveErrand
from hushcast_protocol.overlay.parcels import MAX_PATIENCE
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.transports.base import TransportError

GIVEN_TO_ONE = 4  # of them to one relay: one that does not answer holds up no others
_LOOK_AGAIN = 1.0  # seconds until a place is free at a relay, perhaps
GIVEN_AT_ONCE = 16  # parcels whose answers are awaited; apart from drops, as each may take its patience
# Seconds: a relay awaits answers of those below it for `MAX_PATIENCE`, and who leaves before ends the parcel.
GIVEN_WITHIN = MAX_PATIENCE + 20.0

Listed = Callable[[RelayId, bytes], None]
"""Hears of the second and number of a letter whose parcel was carried out."""


class _Turns:
    """What waits, by second, and of each by relay: many for a few that do not answer hold up few others."""

    def __init__(self) -> None:
        self._waiting: dict[RelayId, RoundRobin[RelayId, tuple[bytes, GiveErrand]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, second: RelayId, item: tuple[bytes, GiveErrand]) -> None:
        """Let an errand and its number wait."""
        self._waiting.setdefault(second, RoundRobin()).add(item[1].relay, item)

    def pop(self) -> tuple[RelayId, tuple[bytes, GiveErrand]]:
        """Take out the next: of the second whose turn it is, of the relay whose turn it is there."""
        second, relays = next(iter(self._waiting.items()))
        del self._waiting[second]
        _, item = relays.pop()
        if relays:
            self._waiting[second] = relays
        return second, item


class ParcelErrands:
    """Those of one third."""

    def __init__(self, means: CoverMeans, listed: Listed) -> None:
        self._means = means
        self._listed = listed
        self._waiting = _Turns()
        self._under_way: Counter[RelayId] = Counter()  # by relay
        self._more = ChangeSignal()

    def add(self, second: RelayId, number: bytes, errand: GiveErrand) -> None:
        """Take the errand of a second's letter."""
        self._waiting.add(second, (number, errand))
        self._more.tell()

    def end_hour(self) -> None:
        """Let those that wait be lost: what an hour has is bounded, and they go anew."""
        self._waiting = _Turns()

    async def run(self) -> None:
        """Hand parcels over until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(GIVEN_AT_ONCE):
                nursery.start_soon(self._give_all)

    async def _give_all(self) -> None:
        while True:
            while not self._waiting:
                await self._more.wait()
            second, (number, errand) = self._waiting.pop()
            if self._under_way[errand.relay] >= GIVEN_TO_ONE:
                self._waiting.add(second, (number, errand))
                await trio.sleep(_LOOK_AGAIN)
                continue
            self._under_way[errand.relay] += 1
            try:
                if await self._give(errand):
                    self._listed(second, number)
            finally:
                self._under_way[errand.relay] -= 1
                self._under_way += Counter()  # without what is 0

    async def _give(self, errand: GiveErrand) -> bool:
        if (relay := self._means.shards.relay(errand.relay)) is None:
            return False
        frame, within = ParcelFrame(0, errand.sealed, None), GIVEN_WITHIN
        try:
            answer = await self._means.connector.drop(
                relay, frame, decode_parcel_answer, within, is_drawn=False
            )
        except (TransportError, PeerError):
            return False
        return answer.refused is None
