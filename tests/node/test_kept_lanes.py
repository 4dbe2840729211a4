"""A daemon's lanes: three, on disk before they are used, changed by the lists and by hosts that are gone."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from cover_world import CoverWorld

from hushcast_overlay.routes.cover.kept_chain import KeptChain
from hushcast_overlay.routes.cover.kept_lanes import KeptLanes
from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.cover.cover_frames import CoverBlocks
from hushcast_protocol.cover.lane_box import lane_filled
from hushcast_protocol.cover.lane_seals import host_block, second_block
from hushcast_protocol.cover.lane_second import LaneSecond
from hushcast_protocol.cover.network_cover import network_cover
from hushcast_protocol.overlay.host_list import GONE_AFTER
from hushcast_runtime.storage.changes import Change


async def begun(world: CoverWorld) -> tuple[KeptChain, KeptLanes]:
    chain, lanes = await world.chain(), await world.lanes()
    await world.follow(chain)
    assert await follows(world, chain, lanes)
    return chain, lanes


async def follows(world: CoverWorld, chain: KeptChain, lanes: KeptLanes) -> bool:
    return await lanes.follow(network_cover(world.roster), world.roster, chain.held.chain)


async def test_lanes_have_other_hosts_and_seconds_and_stay_over_restarts() -> None:
    world = CoverWorld()
    chain, lanes = await begun(world)
    held = chain.held.chain
    relays = [one.host.relay for one in lanes.lanes] + [one.second for one in lanes.lanes]
    assert len({*relays, held.porter, held.second, held.third}) == 9
    assert len({one.until for one in lanes.lanes}) == 1
    lanes.note_told(lanes.lanes[1].name)
    again = await world.lanes()
    assert [one.is_told for one in again.lanes] == [False, True, False]
    assert not await follows(world, chain, again)
    assert again.bills == lanes.bills
    assert [one.keys for one in again.lanes] == [one.keys for one in lanes.lanes]
    assert lanes.lanes[0].box.reveal().hex() not in repr(lanes.lanes)
    ((key, value),) = await world.store.scan("covered-lanes")  # type: ignore[arg-type]
    world.store.write_soon(Change("covered-lanes", key, value[:-3]))  # type: ignore[arg-type]
    assert (await world.lanes()).lanes == [], "others are drawn"


async def test_a_quarter_changes_seconds_names_and_keys_and_a_host_that_is_gone_its_lane_alone() -> None:
    world = CoverWorld()
    chain, lanes = await begun(world)
    before = lanes.lanes
    world.is_later(1, 4)
    assert not await follows(world, chain, lanes), "none changes within two days"
    world.is_later(2, 4)
    assert await follows(world, chain, lanes)
    assert {one.name for one in before}.isdisjoint(one.name for one in lanes.lanes)
    for old, new in zip(before, lanes.lanes, strict=True):
        assert old.host.relay in (new.host.relay, new.second)
        assert (old.box == new.box) == (old.host.relay == new.host.relay)
    before = lanes.lanes
    world.without(before[0].host.relay)
    for _ in range(GONE_AFTER):
        assert not await follows(world, chain, lanes)
        world.is_later(1, 4)
    assert await follows(world, chain, lanes)
    changed = [old.name != new.name for old, new in zip(before, lanes.lanes, strict=True)]
    assert changed == [True, False, False]


async def test_in_a_new_quarter_no_tree_tells_a_host_of_a_lane_that_had_one_before() -> None:
    """It goes at once, and a held letter tells of all lanes, in use or not: none begins first for its use."""
    world = CoverWorld()
    day = 24 * network_cover(world.roster).rules.epoch_seconds
    world.now = 3 * QUARTER * day + 1.0
    chain, lanes = await begun(world)
    assert all(one.is_to_be_told(1) for one in lanes.lanes), "there is no lane yet"
    lanes.note_told(lanes.lanes[0].name)
    before = lanes.lanes
    world.is_later(QUARTER, 4)
    assert await follows(world, chain, lanes)
    for old, new in zip(before, (await world.lanes()).lanes, strict=True):
        is_known = old.is_told and old.box == new.box
        assert new.is_to_be_told(old.until) is not is_known
        assert new.is_to_be_told(old.until + 1), "the host has no lane for the box any more"
        assert new.is_to_be_told(None)
    lanes.note_told(lanes.lanes[0].name)
    world.is_later(QUARTER + 2, 5)
    assert await follows(world, chain, lanes)
    now = network_cover(world.roster).rules.round_at(world.now)
    assert all(one.is_to_be_told(now) for one in lanes.lanes), "the lanes before are over"


async def test_lanes_that_an_earlier_version_kept_are_read() -> None:
    world = CoverWorld()
    _, lanes = await begun(world)
    ((key, value),) = await world.store.scan("covered-lanes")  # type: ignore[arg-type]
    *head, kept = msgspec.msgpack.decode(value)
    earlier = msgspec.msgpack.encode([*head, [lane[:-1] for lane in kept]])
    world.store.write_soon(Change("covered-lanes", key, earlier))  # type: ignore[arg-type]
    assert (await world.lanes()).lanes == lanes.lanes


async def test_another_porter_has_bills_that_seconds_take_in_place_of_those_before() -> None:
    world = CoverWorld()
    chain, lanes = await begun(world)
    before, held = lanes.lanes[0], chain.held.chain
    rules = network_cover(world.roster).rules
    now = before.until - 10
    key = world.keys[before.second]
    second = LaneSecond(rules, before.second, key, now)
    assert second.show(before.bill, now, held.porter)
    chain.held.chain = replace(held, porter=world.env.randomness(32))
    await follows(world, chain, lanes)
    after = (await world.lanes()).lanes[0]
    assert (after.name, after.keys, after.until) == (before.name, before.keys, before.until)
    assert second.show(after.bill, now, chain.held.chain.porter)
    await follows(world, chain, lanes)
    assert lanes.lanes[0].bill == after.bill


async def test_blocks_of_the_round_before_open_and_all_else_brings_nothing() -> None:
    world = CoverWorld()
    _, lanes = await begun(world)
    keys = lanes.lanes[2].keys
    block = second_block(keys.second, 10, host_block(keys.host, 10, lane_filled([b"item"])))
    noise = world.env.randomness(len(block))
    assert lanes.opened(CoverBlocks(11, 11, (noise, noise, block, noise))) == [[], [], [b"item"]]
    assert [lanes.silent_for(number) for number in range(3)] == [None, None, 0]
    assert lanes.opened(CoverBlocks(12, 12, (noise, noise, block, noise))) == [[], [], []], "of another round"
    assert lanes.opened(CoverBlocks(11, 11, (block, noise, noise, noise))) == [[], [], []], "of another lane"
    assert lanes.silent_for(2) == 1
    assert "its lane begins within a day" in lanes.outlook(0)
    assert lanes.outlook(2) == ""
    lanes.opened(CoverBlocks(11 + 10**6, 12, (noise, noise, noise, noise)))
    assert "nothing came by its lane for a day" in lanes.outlook(2)
