"""A stranger hands in parcels for one relay that does not answer, so that none for others are passed on.

He has one listed relay that is silent, or as much bandwidth as one link. All room of strangers was taken for
as long as a parcel may wait, and again after that: nobody else had a lease installed by way of this relay.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from hushcast_overlay.relay.parcel_forwarding import MAX_UNDER_WAY, MAX_UNDER_WAY_BYTES, ParcelForwarding
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import ParcelAnswer
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.parcels import MAX_PARCEL, MAX_PATIENCE, OnwardParcel

SILENT, OTHER = (bytes([number]) * 32 for number in (1, 2))


class Others:
    """Relays with links; one does not answer in time."""

    def is_linked(self, hop: Hop) -> bool:
        return True

    async def request(self, relay: Hop, sealed: bytes, patience: float) -> ParcelAnswer:
        await trio.sleep(patience if relay == relay_hop(SILENT) else 0)
        return ParcelAnswer(0, None, ())


def parcel_for(relay: bytes, size: int) -> Any:
    return SimpleNamespace(onward=(OnwardParcel(relay, bytes(size)),), patience=MAX_PATIENCE)


@pytest.mark.parametrize(
    ("size", "most", "of"),
    [
        (100, MAX_UNDER_WAY, len),
        (MAX_PARCEL, MAX_UNDER_WAY_BYTES // MAX_PARCEL, lambda passing: passing.size // MAX_PARCEL),
    ],
)
@pytest.mark.parametrize("by", [ORIGIN, b"\3" * 32])
async def test_what_waits_for_one_relay_is_in_the_way_of_no_other(
    by: bytes,
    size: int,
    most: int,
    of: Callable[[ParcelForwarding], int],
    autojump_clock: trio.testing.MockClock,
) -> None:
    shards: Any = SimpleNamespace(relay=lambda relay: relay)
    passing = ParcelForwarding(shards, Others())
    refused = 0

    async def hand_in() -> None:
        nonlocal refused
        try:
            with passing.reserve(parcel_for(SILENT, size), by) as passage:
                await passage.run()
        except Refusal:
            refused += 1

    async with trio.open_nursery() as nursery:
        for _ in range(most):
            nursery.start_soon(hand_in)
        await trio.sleep(1)
        assert of(passing) == most - refused == most // 16, "an eighth of what strangers have"
        with passing.reserve(parcel_for(OTHER, size), by) as passage:
            assert await passage.run() == []
    assert len(passing) == passing.size == 0
    with passing.reserve(parcel_for(SILENT, size), by), passing.reserve(parcel_for(SILENT, size), by):
        pass
    assert not passing._to
    assert not passing._bytes_to
