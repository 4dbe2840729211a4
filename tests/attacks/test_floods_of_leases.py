"""A stranger drops messages and installs leases for them without end, so that others' late ones never come.

Each lease took what waited for it, 1,024 drops at most, to a line in which all stood in order of arrival.
With 20 drops and 20 leases a second of one topic an honest lease got 6 of 10 that waited for it, after 67 to
302 s in place of 1, and the relay's memory trebled within six minutes.
"""

from __future__ import annotations

import os

import pytest
import trio
from flooded_origin import HIS, HONEST, LONG, FloodedOrigin, with_an_owner
from owner_end import BODY, OwnerEnd
from small_network import small_network, until

from hushcast_overlay.relay import drops
from hushcast_overlay.relay.drops import GATHER
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay import late_routes

FLOODED = 120  # seconds: there were more keys in the line than the pace takes in as many


async def waiting_for(scene: FloodedOrigin, owner: OwnerEnd, count: int) -> list[Message]:
    """Drop, and have an owner hold the topic of what waits then; return what was dropped."""
    waited = [await scene.drop(HONEST) for _ in range(count)]
    await trio.sleep(5)  # they are handed on, to the host too, which knows nothing of them yet
    await owner.attach()
    await owner.hold(scene.origin, trunk=HONEST)
    return waited


async def served_within(scene: FloodedOrigin, owner: OwnerEnd, count: int = 10) -> float:
    """Return how many seconds after an honest lease all that waited for it has come."""
    waited = await waiting_for(scene, owner, count)
    assert not owner.heard
    await scene.install(scene.lease(HONEST))
    began = trio.current_time()
    await owner.hears(*waited, within=400)
    return trio.current_time() - began


@pytest.mark.slow
@pytest.mark.parametrize("flood", [2, 4])
@pytest.mark.parametrize("trunk", [HIS, HONEST], ids=["his topic", "theirs"])
async def test_an_honest_lease_is_served_at_once(
    monkeypatch: pytest.MonkeyPatch, flood: float, trunk: bytes
) -> None:
    """A tenth of the pace, and of the flood: the line was as long, in seconds."""
    monkeypatch.setattr(drops, "MAX_LATE_A_SECOND", drops.MAX_LATE_A_SECOND / 10)
    monkeypatch.setattr(drops, "MAX_LATE_AT_ONCE", drops.MAX_LATE_AT_ONCE / 10)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        scene, owner = with_an_owner(net)
        before = trio.lowlevel.current_statistics().tasks_living
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.flood, flood, FLOODED, trunk)
            await trio.sleep(FLOODED - 30)
            assert trio.lowlevel.current_statistics().tasks_living < before + 20
            assert await served_within(scene, owner) < GATHER + 3
        await trio.sleep(310)
        await until(lambda: scene.waiting == 0, 5, "nothing is kept for ever")


async def test_what_is_installed_unchanged_brings_nothing_again() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        scene, owner = with_an_owner(net)
        (waited,) = await waiting_for(scene, owner, 1)
        lease = scene.lease(HONEST)
        for _ in range(3):
            await scene.install(lease)
            await owner.hears(waited, within=5)
            await trio.sleep(5)
            assert net.count("messages_routed_late") == 1
        await scene.origin.restart()
        await scene.install(lease)  # the restart may have come before what it brought
        await trio.sleep(5)
        assert net.count("messages_routed_late") == 2


async def test_one_turn_serves_all_leases_of_a_moment() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        scene, owner = with_an_owner(net)
        (waited,) = await waiting_for(scene, owner, 1)
        for _ in range(20):
            await scene.install(scene.lease(HONEST))
        await owner.hears(waited, within=5)
        await trio.sleep(5)
        assert net.count("messages_routed_late") == 1


async def test_who_waits_for_a_turn_gives_way_on_disk_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_routes, "MAX_WAITING_SIZE", 5 * BODY)
    monkeypatch.setattr(drops, "MAX_LATE_A_SECOND", 0.1)
    monkeypatch.setattr(drops, "MAX_LATE_AT_ONCE", 1)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        scene, _ = with_an_owner(net)
        for _ in range(4):
            for trunk in [os.urandom(16) for _ in range(5)]:
                await scene.drop(trunk)
                await scene.install(scene.lease(trunk))
            await trio.sleep(3)
            assert scene.waiting <= 6
