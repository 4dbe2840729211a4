"""A stranger fills the memory for parcels over and over, to fill the disk of a relay with their digests."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from small_network import small_network

from hushcast_protocol.overlay import parcels
from hushcast_protocol.overlay.leases import Withdraw
from hushcast_protocol.overlay.parcels import Parcel, seal_parcel

ROOM = 8  # digests, instead of 50,000; half of them are for parcels that nobody paid for


async def test_as_many_digests_are_on_disk_as_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "MAX_PARCELS_REMEMBERED", ROOM)
    async with small_network(relays=1, clients=0) as net:
        node = net.relays[0]
        relay, identity = node.daemon.overlay.relay, node.identity
        assert relay is not None
        assert identity is not None
        refused: list[str | None] = []

        async def hand_in(epoch: int) -> None:
            parcel = Parcel(net.net.id, node.id, epoch, Withdraw(os.urandom(16)), 0, (), os.urandom(16))
            sealed = seal_parcel(parcel, identity.parcel_key.public(), os.urandom)
            refused.append((await relay.parcels.take(sealed, bytes(32))).refused)

        epoch = net.calendar.epoch(net.now)
        for _ in range(ROOM // 2 + 1):
            await hand_in(epoch)
        assert refused[-2:] == [None, "quota"]
        env, later = relay.parcels._env, 4 * net.epoch  # in that epoch, and the relay has not looked yet
        relay.parcels._env = replace(env, now=lambda: env.now() + later)
        await hand_in(epoch + 4)
        assert len(await node.store.scan("parcel")) == relay.parcels.fullness() * ROOM
        assert refused[-1] == "quota"
