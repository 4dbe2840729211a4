"""Relays that show wrong parts of shards, or none, are found out and passed over; caps hold for who asks."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import trio
from shard_world import DAY, EPOCH, NETWORK, Member, ShardWorld, client, network
from small_network import until

from hushcast_overlay.relay import strangers
from hushcast_overlay.shards.shard_fetcher import ShardContact
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ping, decode_overlay
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShardAnswer,
    ShardRequest,
    ShardUnavailable,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel, open_channel

pytestmark = pytest.mark.slow


def flipped(body: bytes) -> bytes:
    return body[:-1] + bytes([body[-1] ^ 1])


def changed(answer: ShardAnswer) -> ShardAnswer:
    """The same part with one bit that is another."""
    if isinstance(answer, ShownLeaf):
        return msgspec.structs.replace(answer, leaf=flipped(answer.leaf))
    if isinstance(answer, ShownSlice):
        return ShownSlice(flipped(answer.body))
    if isinstance(answer, ShownPiece):
        return msgspec.structs.replace(answer, body=flipped(answer.body))
    return answer


def of_another_shard(world: ShardWorld) -> Callable[[ShardRequest], ShardAnswer]:
    """Show what is true, of the shard beside."""

    def answer(request: ShardRequest) -> ShardAnswer:
        if isinstance(request, AskPiece):
            return world.true_answer(AskPiece(request.day, request.number ^ 1))
        return world.true_answer(msgspec.structs.replace(request, shard=request.shard ^ 1))

    return answer


def of_before(world: ShardWorld) -> Callable[[ShardRequest], ShardAnswer]:
    """Show an old leaf, in which other relays were there."""

    def answer(request: ShardRequest) -> ShardAnswer:
        if isinstance(request, AskLeaf):
            return world.true_answer(msgspec.structs.replace(request, epoch=request.epoch - 1))
        return world.true_answer(request)

    return answer


LIES: dict[str, Callable[[ShardWorld], Callable[[ShardRequest], ShardAnswer]]] = {
    "a bit": lambda world: lambda request: changed(world.true_answer(request)),
    "another shard": of_another_shard,
    "an old leaf": of_before,
    "a leaf for all": lambda world: lambda request: world.true_answer(AskLeaf(world.epoch, DAY, 0)),
    "a slice for all": lambda world: lambda request: world.true_answer(AskSlice(DAY, 0)),
}


@pytest.mark.parametrize("lie", LIES)
async def test_who_shows_wrong_bytes_is_passed_over_for_the_day(lie):
    async with network() as world:
        await world.relays_up()
        world.missing[world.epoch - 1] = {world.ids[0]}
        lied = []

        def lying(relay: bytes) -> Callable[[ShardRequest], ShardAnswer]:
            def answer(request: ShardRequest) -> ShardAnswer:
                shown = LIES[lie](world)(request)
                if shown != world.true_answer(request):
                    lied.append(world.address(relay))
                return shown

            return answer

        for shard in range(4):
            for relay in world.guides(shard, DAY)[:4]:
                world.relays[relay].lie(lying(relay))
        one = await client(world)
        for shard in range(4):
            assert await one.roster_of(shard) == set(world.members(shard, DAY))
        assert lied
        assert one.counters["shard_parts_refused"] == len(lied) == len(set(lied))
        found_out = set(lied)
        one.connected.clear()
        await trio.sleep(3 * EPOCH)
        assert len(one.connected) >= 4 * 2
        assert not found_out & {address for _, address, _ in one.connected}


async def test_a_liar_among_the_guides_of_all_shards_is_found_out():
    async with network(relays=200, bits=6) as world:
        one = await client(world)
        # 64 shards: two pieces, one of which is asked of authorities, and the other of relays named in it.
        book = one.shards._guides
        await one.rosters_held()
        lying, asked = 0, []

        async def show(relay: bytes, answer: Callable[[ShardRequest], ShardAnswer]) -> None:
            member = world.member(relay.hex()[:8], relay)
            await member.start(runs=False)

            def noted(request: ShardRequest) -> ShardAnswer:
                nonlocal lying
                asked.append((relay, request))
                shown = answer(request)
                lying += shown != world.true_answer(request)
                return shown

            member.lie(noted)

        for number, relay in enumerate(world.ids):
            await show(relay, LIES["a bit"](world) if number % 3 else world.true_answer)
        sharding = one.shards.sharding(DAY)
        assert sharding is not None
        for shard in (0, 63, 31, 32):
            guides = await book.guides(sharding, shard)
            assert {guide.relay for guide in guides} == set(world.guides(shard, DAY))
        assert len(one.asked) <= 2
        drawn = one.asked[0]
        assert isinstance(drawn, AskPiece)
        pieces = [request for _, request in asked if isinstance(request, AskPiece)]
        assert {piece.number for piece in pieces} == {1 - drawn.number}  # nobody heard of the drawn one
        assert lying == one.counters["shard_parts_refused"]
        before = len(asked)
        assert len(await book.guides(sharding, 5)) == len(world.guides(5, DAY))
        assert len(asked) == before  # held


async def test_the_drawn_piece_differs_from_client_to_client():
    async with network(relays=130, bits=6) as world:
        drawn = set()
        for number in range(12):
            one = await client(world, f"client {number}")
            sharding = one.shards.sharding(DAY)
            assert sharding is not None
            await one.shards._guides.guides(sharding, 0)
            drawn.add(one.asked[0])
            await one.stop()
        assert drawn == {AskPiece(DAY, 0), AskPiece(DAY, 1)}


async def test_silent_relays_cost_time_and_others_are_asked():
    async with network() as world:
        await world.relays_up()
        for shard in range(4):
            for relay in world.guides(shard, DAY)[:3]:
                await world.relays[relay].stop()
            held = world.guides(shard, DAY)[3]
            world.wires.listeners[world.address(held)].accept = lambda stream: None  # type: ignore[method-assign]
        one = await client(world)
        async with trio.open_nursery() as nursery:
            for shard in range(4):
                nursery.start_soon(one.roster_of, shard)
        assert one.counters["shard_parts_refused"] == 0
        assert one.counters["shards_taken"] == 4


async def test_who_says_nothing_is_waited_for_once_though_another_answers_first():
    async with network() as world:
        await world.relays_up()
        silent, *others = world.guides(2, DAY)
        fetching, sharding = (one := await client(world)).shards._fetching, one.shards.sharding(DAY)
        assert sharding is not None
        world.wires.listeners[world.address(silent)].accept = lambda stream: None  # type: ignore[method-assign]
        whom = [ShardContact(relay, Address(world.address(relay))) for relay in (silent, *others)]
        waits = 0
        for _ in range(20):  # it would come first in one of four
            begin = trio.current_time()
            await fetching.leaf(sharding, world.epoch, 2, whom)
            waits += trio.current_time() - begin >= fetching._patience
        assert waits == 1
        # One that was slow once, and is not any more, comes in its turn again.
        fetching._pass_over(DAY, others[0])
        await fetching.leaf(sharding, world.epoch, 2, whom[1:2])
        assert fetching._silent[DAY] == {silent}


async def test_where_no_guide_shows_a_shard_an_authority_does():
    async with network() as world:
        await world.relays_up()
        for relay in world.guides(2, DAY):
            world.relays[relay].lie(lambda request: ShardUnavailable())
        one = await client(world)
        assert await one.roster_of(2) == set(world.members(2, DAY))
        assert one.asked == [AskPiece(DAY, 0), AskLeaf(world.epoch, DAY, 2), AskSlice(DAY, 2)]
        assert one.counters["shard_relays_failed"] == 2
        # Who does not have it is no liar: it is asked again.
        assert one.shards._fetching._liars == {}


async def test_authorities_that_show_wrong_bytes_are_not_believed():
    async with network() as world:
        one = await client(world)
        world.authorities = lambda request: changed(world.true_answer(request))
        with pytest.raises(TransportError):
            await one.shards.find(DAY, world.trunk_in(0))
        assert one.shards.of(DAY, world.trunk_in(0)) is None


async def test_what_is_held_goes_on_while_no_leaf_comes():
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        near = await one.shards.find(DAY, world.trunk_in(1))
        world.authorities = lambda request: ShardUnavailable()
        for relay in world.members(1, DAY):
            world.relays[relay].lie(lambda request: ShardUnavailable())
        begin = world.epoch
        await trio.sleep(3 * EPOCH)
        assert near.newest is not None
        assert near.newest.epoch == begin
        assert set(near.current().relays) == set(world.members(1, DAY))
        assert one.counters["shard_fetches_failed"] > 3
        world.authorities = world.true_answer
        await trio.sleep(EPOCH)
        assert near.newest.epoch >= world.epoch - 1


async def ask(world: ShardWorld, member: Member, request: ShardRequest) -> Channel[object]:
    identity = world.identities[world.ids.index(member.relay or b"")]
    link = Link.initiate(NETWORK.id, identity.seed.public(), world.env.randomness, MAX_OVERLAY_FRAME)
    address = world.address(identity.seed.public())
    channel, _ = await open_channel(world.wires.transport(), address, "test", link, decode_overlay)
    await channel.send(request)
    return channel


async def test_who_asks_for_slices_and_reads_none_takes_no_place_for_long(monkeypatch):
    monkeypatch.setattr(strangers, "MAX_SHOWING", 3)
    async with network(relays=8, bits=1) as world:
        member = world.member("relay", world.ids[0])
        await member.start()
        await trio.sleep(10)
        shard = world.shard_of(world.ids[0], DAY)
        opened = [await ask(world, member, AskSlice(DAY, shard)) for _ in range(10)]
        await trio.sleep(1)
        assert member.counters["shard_parts_shown"] == 10
        assert member.counters["strangers_dropped"] == 7
        # Leaves are as small as receipts, and have the room of those.
        leaf = await ask(world, member, AskLeaf(world.epoch, DAY, shard))
        assert isinstance(await leaf.one(5.0), ShownLeaf)
        assert member.counters["strangers_dropped"] == 7
        for channel in opened:
            await channel.aclose()


async def test_a_second_frame_and_what_only_relays_say_get_no_answer():
    async with network(relays=8, bits=1) as world:
        member = world.member("relay", world.ids[0])
        await member.start()
        await trio.sleep(10)
        shard = world.shard_of(world.ids[0], DAY)
        for said in (Ping(), ShardUnavailable(), ShownSlice(b"")):
            channel = await ask(world, member, said)  # type: ignore[arg-type]
            with pytest.raises(TransportError):
                await channel.one(5.0)
        await until(lambda: member.counters["refused_form"] == 3, 5.0)
        channel = await ask(world, member, AskSlice(DAY, shard))
        await channel.send(AskSlice(DAY, shard))
        assert isinstance(await channel.one(5.0), ShownSlice)
        with pytest.raises(TransportError):
            await channel.one(5.0)
