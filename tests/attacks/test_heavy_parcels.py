"""A stranger hands in the largest parcels for relays that do not answer, to fill a relay's memory.

They were counted, and each may have half a MiB: a thousand of them, held twice, were a gigabyte.
"""

from __future__ import annotations

import os
import tracemalloc

import msgspec
import pytest
import trio
import trio.testing
from small_network import Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import parcel_forwarding
from hushcast_overlay.relay.parcel_forwarding import (
    MAX_UNDER_WAY_BYTES,
    ONE_HOPS_BYTES,
    RELAYS_BYTES,
    STRANGERS_BYTES,
    ParcelForwarding,
)
from hushcast_overlay.relay.session import Session
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frame_directions import decode_from_relay
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, ParcelAnswer, ParcelFrame
from hushcast_protocol.overlay.leases import Withdraw
from hushcast_protocol.overlay.parcels import MAX_PARCEL, OnwardParcel, Parcel, seal_parcel
from hushcast_runtime.transports.channel import Channel, accept_channel

HEAVY = 500_000  # bytes


def parcel_for(net: SmallNetwork, relay: Node, below: Node, size: int = HEAVY) -> Parcel:
    """One that holds so many bytes for one relay below."""
    epoch, onward = net.calendar.epoch(net.now), (OnwardParcel(below.id, bytes(size)),)
    return Parcel(net.net.id, relay.id, epoch, Withdraw(os.urandom(16)), 100, onward, bytes(16))


def passing_at(relay: Node) -> ParcelForwarding:
    assert relay.daemon.overlay.relay is not None
    return relay.daemon.overlay.relay.parcels._passing


async def hand_in(net: SmallNetwork, relay: Node, below: Node, us: Node | None = None) -> ParcelAnswer:
    """Hand in a heavy parcel, as a stranger or a relay; wait for its answer."""
    assert relay.identity is not None
    sealed = seal_parcel(parcel_for(net, relay, below), relay.identity.parcel_key.public(), os.urandom)
    seed = None if us is None or us.identity is None else us.identity.seed
    channel = await net.knock(relay, seed)
    await channel.send(ParcelFrame(0, sealed, None))
    del sealed
    answer = await channel.one(300)
    await channel.aclose()
    assert isinstance(answer, ParcelAnswer)
    return answer


@pytest.mark.parametrize("by_a_relay", [False, True])
async def test_parcels_under_way_are_weighed(monkeypatch: pytest.MonkeyPatch, by_a_relay: bool) -> None:
    monkeypatch.setattr(parcel_forwarding, "STRANGERS_BYTES", 3 * HEAVY)
    monkeypatch.setattr(parcel_forwarding, "RELAYS_BYTES", 3 * HEAVY)
    async with small_network(relays=3, clients=0, epoch=36000) as net:
        relay, silent, other = net.relays
        us = other if by_a_relay else None
        silent.gate.shut()
        for _ in range(3):
            net.nursery.start_soon(hand_in, net, relay, silent, us)
        await until(lambda: len(passing_at(relay)) == 3)
        assert passing_at(relay).size == 3 * HEAVY
        assert (await hand_in(net, relay, silent, us)).refused == "quota"
        # What others hand in is in nobody's way, and all is given back when nobody waits any more.
        passing_at(relay).reserve(parcel_for(net, relay, silent), silent.id).__exit__()
        await until(lambda: len(passing_at(relay)) == 0, 200)
        assert passing_at(relay).size == 0


async def test_shares_of_bytes_leave_room_for_all_others() -> None:
    async with small_network(relays=3, clients=0) as net:
        relay, one, other = net.relays
        room = passing_at(relay)
        parcel = parcel_for(net, relay, one, MAX_PARCEL)
        unlisted = msgspec.structs.replace(parcel, onward=(OnwardParcel(os.urandom(32), bytes(MAX_PARCEL)),))
        for previous, share in ((ORIGIN, STRANGERS_BYTES), (one.id, RELAYS_BYTES), (other.id, RELAYS_BYTES)):
            for _ in range(ONE_HOPS_BYTES // MAX_PARCEL):
                room.reserve(parcel, previous)
            with pytest.raises(Refusal, match="quota"):
                room.reserve(parcel, previous)
            for _ in range((share - ONE_HOPS_BYTES) // MAX_PARCEL):
                room.reserve(unlisted, previous)
            with pytest.raises(Refusal, match="quota"):
                room.reserve(unlisted, previous)
        assert room.size == MAX_UNDER_WAY_BYTES
        with pytest.raises(Refusal, match="quota"):
            room.reserve(unlisted, relay.id)


async def test_a_parcel_under_way_is_held_once() -> None:
    """The frame is let go of once it is open, and what the other end did not take once nobody waits."""
    count = 6
    async with small_network(relays=2, clients=0, epoch=36000) as net:
        relay, silent = net.relays
        await silent.stop()
        await hand_in(net, relay, silent)
        tracemalloc.start()
        try:
            for _ in range(count):
                net.nursery.start_soon(hand_in, net, relay, silent)
            await until(lambda: len(passing_at(relay)) == count)
            await trio.sleep(1)
            assert tracemalloc.get_traced_memory()[0] < 1.5 * count * HEAVY
            await until(lambda: len(passing_at(relay)) == 0, 200)
            await trio.sleep(1)
            assert tracemalloc.get_traced_memory()[0] < count * HEAVY / 4
        finally:
            tracemalloc.stop()


async def test_what_the_other_end_does_not_read_is_let_go_of() -> None:
    """Who waits for an answer gives up after a while; what was not written yet is not kept for the link."""
    key = Seed(bytes([9]) * 32)
    streams = trio.testing.lockstep_stream_pair()
    ends: list[Channel[object]] = []

    async def open_end(stream: trio.abc.Stream, link: Link) -> None:
        ends.append((await accept_channel(stream, link, decode_from_relay))[0])

    async with trio.open_nursery() as nursery:
        opening = Link.initiate(bytes(32), key.public(), os.urandom, MAX_OVERLAY_FRAME, key)
        nursery.start_soon(open_end, streams[0], opening)
        nursery.start_soon(open_end, streams[1], Link.respond(bytes(32), key, os.urandom, MAX_OVERLAY_FRAME))
    async with trio.open_nursery() as nursery:
        ours = next(end for end in ends if end._stream is streams[0])
        session = Session(ours, nursery.start_soon, trio.current_time())
        with trio.move_on_after(5):
            async with trio.open_nursery() as waiting:
                for _ in range(10):
                    waiting.start_soon(session.request, bytes(HEAVY))
                await trio.testing.wait_all_tasks_blocked()
                assert session._queue is not None
                assert len(session._queue.posted) == 9
        assert not session._queue
        nursery.cancel_scope.cancel()
