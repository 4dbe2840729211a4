"""Shards in daemons: held while they count, fresh each epoch at moments of their own, served on."""

from __future__ import annotations

from itertools import pairwise
from statistics import pstdev

import pytest
import trio
from shard_world import CALENDAR, DAY, EPOCH, ShardWorld, client, network

from hushcast_overlay.shards import shard_keeper
from hushcast_overlay.shards.shard_server import LEAVES_SHOWN
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.shards.shard_requests import AskLeaf, AskPiece, AskSlice, ShardUnavailable
from hushcast_runtime.transports.base import TransportError

pytestmark = pytest.mark.slow


async def until_epoch(world: ShardWorld, epoch: int, share: float = 0.6) -> None:
    """Wait until a share of an epoch is over; by 0.6 its leaves are fetched."""
    await world.env.sleep_until(CALENDAR.epoch_start(epoch) + share * EPOCH)


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
        guides = {world.address(relay) for shard in range(4) for relay in world.guides(shard, DAY)}
        assert {address for _, address, _ in one.connected} <= guides
        assert one.counters["shards_taken"] == 4
        assert await one.store.scan("shard-part") == []  # a client serves nothing
        assert one.shards.own(DAY) is None


async def test_a_leaf_is_taken_each_epoch_at_a_moment_of_its_own():
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        shards = [world.trunk_in(shard) for shard in range(4)]
        nears = [await one.shards.find(DAY, trunk) for trunk in shards]
        begin = world.epoch
        one.connected.clear()
        away = world.members(0, DAY)[0]
        world.missing[begin + 1] = {away}
        world.difficulty[world.members(1, DAY)[0]] = 7
        await until_epoch(world, begin + 1)
        assert all(near.newest is not None and near.newest.epoch == begin + 1 for near in nears)
        assert away not in nears[0].current().relays
        assert nears[1].current().relays[world.members(1, DAY)[0]].difficulty == 7
        moments = sorted(when for when, _, _ in one.connected)
        assert len(moments) == 4  # no slice again
        assert CALENDAR.epoch_start(begin + 1) <= moments[0]
        assert moments[-1] < CALENDAR.epoch_start(begin + 1) + 0.6 * EPOCH
        assert min(later - when for when, later in pairwise(moments)) > 0.1
        # Relays have their own before the epoch begins, from authorities.
        own = [
            when
            for name, when, request in world.asked
            if isinstance(request, AskLeaf) and request.epoch == begin + 1
        ]
        assert len(own) == len(world.ids)
        assert CALENDAR.epoch_start(begin + 1) - CALENDAR.lead <= min(own)
        assert max(own) <= CALENDAR.epoch_start(begin + 1)
        # Each at one of its own: in the mean 0.2 of the lead apart from the mean of all. First and last are
        # two draws of 24, and less than half of the lead apart one time in twenty.
        assert pstdev(own) > CALENDAR.lead / 10


async def test_who_was_away_takes_publications_from_its_second_epoch_on():
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        near = await one.shards.find(DAY, world.trunk_in(2))
        away = world.members(2, DAY)[0]
        begin = world.epoch
        world.missing[begin + 1] = {away}
        expected = {0: (True, True), 1: (False, False), 2: (True, False), 3: (True, True)}
        for passed, (is_listed, is_origin) in expected.items():
            await until_epoch(world, begin + passed)
            roster = near.current()
            assert roster.epoch == begin + passed
            assert (away in roster.relays, away in roster.origins) == (is_listed, is_origin), passed


async def test_a_leaf_without_many_relays_is_held_as_a_roster_is():
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        near = await one.shards.find(DAY, world.trunk_in(1))
        members = world.members(1, DAY)
        world.missing[world.epoch + 1] = set(members[: len(members) // 2 + 1])
        await until_epoch(world, world.epoch + 1)
        assert near.held == 1
        assert set(near.current().relays) == set(members)
        assert one.counters["rosters_held"] == 1


async def test_two_who_want_the_same_fetch_it_once():
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        found = []

        async def find() -> None:
            found.append(await one.shards.find(DAY, world.trunk_in(3)))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(find)
        assert len(found) == 5
        assert all(near is found[0] for near in found)
        assert one.counters["shards_taken"] == 1
        assert one.shards.of(DAY, world.trunk_in(3)) is found[0]
        assert one.shards.of(DAY, world.trunk_in(2)) is None


async def test_a_fetch_that_fails_is_told_and_may_be_tried_again():
    async with network() as world:
        one = await client(world)  # no relay is up
        world.authorities = lambda request: ShardUnavailable()
        with pytest.raises(TransportError):
            await one.shards.find(DAY, world.trunk_in(0))
        assert one.counters["shard_fetches_failed"] == 1
        world.authorities = world.true_answer
        assert await one.roster_of(0) == set(world.members(0, DAY))


async def test_a_relay_knows_its_own_shards_alone_and_serves_them():
    async with network() as world:
        await world.relays_up()
        relay = world.ids[5]
        member, shard = world.relays[relay], world.shard_of(relay, DAY)
        near = member.shards.own(DAY)
        assert near is not None
        assert set(near.current().relays) == set(world.members(shard, DAY))
        assert member.shards.is_seated(relay, DAY)
        other = next(one for one in world.ids if world.shard_of(one, DAY) != shard)
        assert member.shards.relay(other) is None
        assert all(member.shards.relay(one) is not None for one in world.members(shard, DAY))
        serving = member.shards.serving
        assert serving.answer(AskSlice(DAY, shard)) == world.true_answer(AskSlice(DAY, shard))
        leaf = AskLeaf(world.epoch, DAY, shard)
        assert serving.answer(leaf) == world.true_answer(leaf)
        assert serving.answer(AskSlice(DAY, (shard + 1) % 4)) == ShardUnavailable()
        assert serving.answer(AskLeaf(world.epoch + 3, DAY, shard)) == ShardUnavailable()
        assert member.counters["shard_parts_shown"] == 2
        assert member.counters["shard_parts_not_shown"] == 2


async def test_guides_serve_the_whole_guide_and_nobody_else_does():
    async with network(relays=40) as world:
        await world.relays_up()
        await trio.sleep(10)
        guides = {relay for shard in range(4) for relay in world.guides(shard, DAY)}
        assert len(guides) == 20
        for relay, member in world.relays.items():
            assert member.shards.serving.has_piece(DAY, 0) == (relay in guides)


async def test_leaves_of_the_last_epochs_are_kept_and_no_more():
    async with network() as world:
        member = world.member("relay", world.ids[0])
        await member.start()
        shard = world.shard_of(world.ids[0], DAY)
        for _ in range(LEAVES_SHOWN + 2):
            await until_epoch(world, world.epoch + 1)
        held = [e for e in world.heads if member.shards.serving.leaf(e, DAY, shard) is not None]
        assert held == list(range(world.epoch - LEAVES_SHOWN + 1, world.epoch + 1))
        assert (
            len(await member.store.scan("shard-part")) == LEAVES_SHOWN + 2
        )  # a slice, and as a guide a piece


async def test_a_restart_serves_on_and_asks_for_nothing():
    async with network() as world:
        relay = world.guides(1, DAY)[0]
        member = world.member("relay", relay)
        await member.start()
        await until_epoch(world, world.epoch + 1)
        before = len(member.asked)
        await member.stop()
        again = world.member("again", relay, member.store)
        await again.start(runs=False)
        for request in (AskSlice(DAY, 1), AskLeaf(world.epoch, DAY, 1), AskPiece(DAY, 0)):
            assert again.shards.serving.answer(request) == world.true_answer(request)
        near = again.shards.own(DAY)
        assert near is not None
        assert set(near.current().relays) == set(world.members(1, DAY))
        assert [standing.roster.epoch for standing in near.standings] == [world.epoch - 1, world.epoch]
        await again.stop()
        assert before > 0
        running = world.member("running", relay, member.store)
        await running.start()
        await trio.sleep(5)
        assert running.asked == []
        await until_epoch(world, world.epoch + 1)
        assert running.asked == [AskLeaf(world.epoch, DAY, 1)]  # and goes on


async def test_damage_to_what_was_kept_costs_a_fetch():
    async with network() as world:
        member = world.member("relay", world.ids[0])
        await member.start()
        await until_epoch(world, world.epoch, 0.9)
        await member.stop()
        shard = world.shard_of(world.ids[0], DAY)
        # The slice of another day: each record is sound, and what authorities signed for is not there.
        world.cut(DAY + 5)
        other = world.true_answer(AskSlice(DAY + 5, shard))
        await member.shards.serving.keep(AskSlice(DAY, shard), other)  # type: ignore[arg-type]
        again = world.member("again", world.ids[0], member.store)
        await again.start()
        await trio.sleep(10)
        near = again.shards.own(DAY)
        assert near is not None
        assert set(near.current().relays) == set(world.members(shard, DAY))
        assert again.shards.serving.answer(AskSlice(DAY, shard)) == world.true_answer(AskSlice(DAY, shard))


async def test_tomorrows_shards_are_known_and_held_from_the_middle_of_the_day_on():
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        assert not one.shards.knows(DAY + 1)
        drawn = DAY * EPOCHS_A_DAY + 12
        await until_epoch(world, drawn - 1)
        assert not one.shards.knows(DAY + 1)
        assert all(not member.shards.knows(DAY + 1) for member in world.relays.values())
        await until_epoch(world, drawn, 0.55)
        assert one.shards.knows(DAY + 1)
        own = [
            when
            for _, when, request in world.asked
            if isinstance(request, AskSlice) and request.day == DAY + 1
        ]
        assert len(own) == len(world.ids)
        assert max(own) - min(own) > 0.4 * EPOCH  # not all relays ask at once
        for relay, member in world.relays.items():
            near = member.shards.own(DAY + 1)
            assert near is not None
            assert set(near.current().relays) == set(world.members(world.shard_of(relay, DAY + 1), DAY + 1))
            stranger = set(near.current().relays) - set(member.shards.own(DAY).current().relays)  # type: ignore[union-attr]
            assert all(member.shards.relay(each) is not None for each in stranger)
        assert await one.roster_of(2, DAY + 1) == set(world.members(2, DAY + 1))
        assert await one.roster_of(2, DAY) == set(world.members(2, DAY))


async def test_what_has_lapsed_is_dropped_from_memory_and_disk():
    async with network(relays=8, bits=1) as world:
        await world.relays_up()
        one = await client(world)
        await one.roster_of(1)
        member = world.relays[world.ids[0]]
        tomorrow = CALENDAR.day_start(DAY + 1)
        await world.env.sleep_until(tomorrow + 0.4 * EPOCH)  # within the grace
        shard = world.shard_of(world.ids[0], DAY)
        assert member.shards.serving.slice(DAY, shard) is not None
        assert one.shards.of(DAY, world.trunk_in(1)) is not None
        assert {*member.shards.own(DAY).current().relays} == {*world.members(shard, DAY)}  # type: ignore[union-attr]
        await world.env.sleep_until(tomorrow + 0.6 * EPOCH)
        assert member.shards.serving.slice(DAY, shard) is None
        assert not any(AskSlice(DAY, shard) == held for held in member.shards.serving._parts)
        assert member.shards.serving.slice(DAY + 1, world.shard_of(world.ids[0], DAY + 1)) is not None
        assert one.shards._keeper._kept == {}
        assert one.shards._guides._days == {}
        kept = [value for _, value in await member.store.scan("shard-part")]
        assert len(kept) == len(member.shards.serving._parts)


async def test_a_relay_that_was_away_asks_for_what_counts_now():
    async with network(relays=8, bits=1) as world:
        member = world.member("relay", world.ids[0])
        await member.start()
        await until_epoch(world, world.epoch + 1)
        await member.stop()
        await world.env.sleep_until(CALENDAR.day_start(DAY + 1) + 2.6 * EPOCH)
        again = world.member("again", world.ids[0], member.store)
        await again.start()
        await trio.sleep(35)  # a second for each head
        assert again.shards.is_seated(world.ids[0], DAY + 1)
        assert {request.day for request in again.asked} == {DAY + 1}
        await world.env.sleep_until(CALENDAR.day_start(DAY + 1) + 4.6 * EPOCH)
        assert again.shards.serving.slice(DAY, world.shard_of(world.ids[0], DAY)) is None


async def test_without_a_beacon_the_shards_of_before_stay():
    async with network(relays=8, bits=1) as world:
        world.without.add(DAY + 1)
        await world.relays_up()
        one = await client(world)
        await world.env.sleep_until(CALENDAR.day_start(DAY + 1) + 1.6 * EPOCH)
        assert one.shards.is_cut(DAY + 1)
        assert one.shards.sharding(DAY + 1).day == DAY  # type: ignore[union-attr]
        trunk = world.trunk_in(0)  # of another day's key
        near = await one.shards.find(DAY + 1, trunk)
        assert set(near.current().relays) == set(world.members(0, DAY))
        assert near.current().epoch == world.epoch
        for member in world.relays.values():
            assert member.shards.own(DAY + 1) is member.shards.own(DAY)
        await until_epoch(world, (DAY + 1) * EPOCHS_A_DAY + 13)
        assert await one.roster_of(0, DAY + 2) == set(world.members(0, DAY + 2))


async def test_where_no_head_comes_tomorrow_is_taken_to_be_like_today():
    async with network(relays=8, bits=1) as world:
        await world.relays_up()
        one = await client(world)
        world.stuck = True
        await until_epoch(world, DAY * EPOCHS_A_DAY + 17)
        assert not one.shards.knows(DAY + 1)
        await until_epoch(world, DAY * EPOCHS_A_DAY + 18)
        assert one.shards.knows(DAY + 1)
        assert await one.roster_of(1, DAY + 1) == set(world.members(1, DAY))


async def test_the_shard_longest_not_asked_for_gives_way(monkeypatch):
    monkeypatch.setattr(shard_keeper, "MAX_SHARDS", 2)
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        for shard in (0, 1, 0, 2):
            await one.roster_of(shard)
            await trio.sleep(1)
        held = [one.shards.of(DAY, world.trunk_in(shard)) is not None for shard in range(4)]
        assert held == [True, False, True, False]
        assert await one.roster_of(1) == set(world.members(1, DAY))
        # A relay's own does not.
        member = world.relays[world.ids[0]]
        for shard in range(4):
            await member.roster_of(shard)
        assert member.shards.own(DAY) is not None
        assert len(member.shards._keeper._kept) == 3


async def test_so_many_fetches_at_once(monkeypatch):
    monkeypatch.setattr(shard_keeper, "MAX_FETCHING", 1)
    async with network() as world:
        await world.relays_up()
        one = await client(world)
        async with trio.open_nursery() as nursery:
            for shard in range(4):
                nursery.start_soon(one.roster_of, shard)
        begun = sorted(when for when, _, _ in one.connected)
        assert len(begun) == 8
        # Each takes two ways to connect, two for the handshake and two for the answer, of 0.1 s each.
        assert min(later - when for when, later in pairwise(begun)) > 0.5


async def test_a_newcomer_is_in_no_shard_before_the_next_cut():
    async with network(relays=8, bits=1) as world:
        world.newcomer(world.ids[7], DAY + 1)
        member = world.member("newcomer", world.ids[7])
        await member.start()
        await trio.sleep(10)
        assert member.shards.own(DAY) is None
        assert not member.shards.is_seated(world.ids[7], DAY)
        await until_epoch(world, DAY * EPOCHS_A_DAY + 12)
        assert member.shards.own(DAY + 1) is not None
        assert member.shards.is_seated(world.ids[7], DAY + 1)
