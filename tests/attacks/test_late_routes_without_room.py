"""A stranger fills a next hop's share, so that what goes late has no room, is forgotten, or kept many times.

A lease that came while a message was still on its way had it marked as routed, though it waited for room: a
restart lost it. And each lease had it wait for room once more.
"""

from __future__ import annotations

import pytest
import trio
from flooded_origin import HIS, HONEST, LONG, FloodedOrigin
from owner_end import BODY
from small_network import SmallNetwork, small_network

from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.leases import ToRelay
from hushcast_runtime.storage import spool as spools


@pytest.fixture(autouse=True)
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spools, "MAX_SHARE", 2 * BODY)


async def filled(net: SmallNetwork) -> tuple[FloodedOrigin, ToRelay]:
    """Fill what an origin keeps for the only other relay, which takes nothing."""
    origin, other = net.relays
    scene, hop = FloodedOrigin(net, origin, other), ToRelay(other.id)
    other.gate.shut()
    await scene.install(scene.lease(HIS, hop))
    for _ in range(2):
        await scene.drop(HIS)
    await trio.sleep(1)
    return scene, hop


def queued(scene: FloodedOrigin) -> list[bytes]:
    """The ids of what waits for room, as often as it does."""
    return [key[:32] for key in scene.relay.drops._without_room or ()]


async def test_it_waits_for_room_once_however_many_leases_come() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        scene, hop = await filled(net)
        dropped = await scene.drop(HONEST)
        for _ in range(5):
            await scene.install(scene.lease(HONEST, hop))
            await trio.sleep(2.5)
        assert queued(scene) == [dropped.id]
        (count,) = scene.relay.drops._at_work.values()
        assert count == 1
        assert scene.relay.forwarding._spool.size >= 3 * BODY, "its room is reserved"


async def test_what_has_no_room_while_it_is_still_on_its_way_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        scene, hop = await filled(net)
        goes_on, is_first = trio.Event(), True

        async def slow(messages: list[Message]) -> None:
            nonlocal is_first
            if is_first:
                is_first = False
                await goes_on.wait()

        monkeypatch.setattr(scene.relay.forwarding, "_take_listed", slow)
        dropped = await scene.drop(HONEST)
        await scene.install(scene.lease(HONEST, hop))
        await trio.sleep(2.5)
        assert queued(scene) == [dropped.id]
        goes_on.set()
        await trio.sleep(1)
        assert queued(scene) == [dropped.id]
        assert dropped.id not in {key[:32] for key in scene.relay.drops._intake._routed}
        await scene.origin.restart()
        await trio.sleep(1)
        assert queued(scene) == [dropped.id]
