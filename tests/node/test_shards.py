"""Shards in daemons: held, kept fresh, served to strangers; who shows wrong bytes is found out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from shard_world import BEGIN, CALENDAR, DAY, EPOCH, Member, ShardWorld

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.shards.requests import AskLeaf, AskPiece, AskSlice, NotShown
from hushcast_runtime.transports.base import TransportError


@asynccontextmanager
async def network(relays: int = 24, bits: int = 2) -> AsyncIterator[ShardWorld]:
    async with trio.open_nursery() as nursery:
        world = ShardWorld(nursery, relays, bits)
        nursery.start_soon(world.run)
        yield world
        nursery.cancel_scope.cancel()


async def client(world: ShardWorld, name: str = "client") -> Member:
    member = world.member(name)
    await member.start()
    await member.rosters_held()
    return member


async def test_a_client_has_the_relays_of_a_topic_from_relays():
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        for shard in range(4):
            assert await one.roster_of(shard) == set(world.members(shard, DAY))
        # Authorities saw one piece of the guide asked for, which is the whole guide here.
        assert one.asked == [AskPiece(DAY, 0)]
        circuits = [circuit for _, _, circuit in one.connected]
        assert len(circuits) == len(set(circuits)) == 4 * 2  # a leaf and a slice for each
