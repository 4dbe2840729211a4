"""Parcels that are passed on: at a pace where a link is to be opened for them, at once where one is there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from hushcast_overlay.relay.parcel_forwarding import PACE, ParcelForwarding
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frames import ParcelAnswer
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.parcels import OnwardParcel

RELAYS = [bytes([number]) * 32 for number in range(1, 21)]


class Others:
    """Relays that answer at once; some are linked."""

    def __init__(self, linked: list[bytes]) -> None:
        self.linked = {relay_hop(relay) for relay in linked}
        self.asked: list[float] = []

    def is_linked(self, hop: Hop) -> bool:
        return hop in self.linked

    async def request(self, relay: Hop, sealed: bytes, patience: float) -> ParcelAnswer:
        await trio.lowlevel.checkpoint()
        self.asked.append(trio.current_time())
        return ParcelAnswer(0, None, ())


@pytest.mark.parametrize(("linked", "paced"), [(20, 0), (5, 15), (0, 20)])
async def test_only_what_needs_a_new_link_waits_for_its_turn(
    linked: int, paced: int, autojump_clock: trio.testing.MockClock
) -> None:
    others = Others(RELAYS[:linked])
    shards: Any = SimpleNamespace(relay=lambda relay: relay)
    parcel: Any = SimpleNamespace(onward=tuple(OnwardParcel(relay, b"") for relay in RELAYS), patience=10)
    passing = ParcelForwarding(shards, others)
    with passing.reserve(parcel, ORIGIN) as passage:
        assert await passage.run() == []
    assert len(others.asked) == len(RELAYS)
    assert others.asked.count(0.0) == linked
    assert max(others.asked) == pytest.approx(paced * PACE)
    assert len(passing) == 0


async def test_who_leaves_gives_back_the_turns_that_it_waited_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A stranger hands in parcels and leaves, again and again; what others hand in need not wait for them."""
    others = Others([])
    shards: Any = SimpleNamespace(relay=lambda relay: relay)
    many: Any = SimpleNamespace(onward=tuple(OnwardParcel(relay, b"") for relay in RELAYS), patience=10)
    one: Any = SimpleNamespace(onward=(OnwardParcel(RELAYS[0], b""),), patience=10)
    passing = ParcelForwarding(shards, others)
    for _ in range(50):
        with passing.reserve(many, ORIGIN) as passage, trio.move_on_after(PACE / 2):
            await passage.run()
    assert others.asked == []
    left = trio.current_time()
    with passing.reserve(one, RELAYS[1]) as passage:
        await passage.run()
    assert others.asked == [pytest.approx(left + PACE)]
    assert len(passing) == 0
