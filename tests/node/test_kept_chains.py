"""A daemon's chain under cover: on disk before it is used, kept over restarts, changed by the rules alone."""

from __future__ import annotations

import pytest
from cover_world import CoverWorld

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.cover.cover_chain import CHANGED_AFTER, PORTER_AWAY, CoverLoss
from hushcast_protocol.cover.network_cover import network_cover
from hushcast_protocol.cover.porter_queue import SERVED_DAYS
from hushcast_runtime.storage.changes import Change


async def test_a_chain_is_on_disk_and_the_same_after_a_restart() -> None:
    world = CoverWorld()
    kept = await world.chain()
    assert await world.follow(kept)
    kept.note_placed(500, 480, network_cover(world.roster).rules)
    kept.note_handed_in(481)
    again = await world.chain()
    assert not await world.follow(again)
    assert again.held.chain == kept.held.chain
    assert (again.held.place, again.held.waybill) == (kept.held.place, kept.held.waybill)
    assert (again.begins, again.held.since, again.handed_in) == (500, 480, 481)
    assert again.held.without_list == 1
    assert again.is_passed(500)
    assert not again.is_passed(499)
    assert kept.held.waybill.key.reveal().hex() not in repr(again.held)


async def test_a_porter_is_left_after_a_day_away_and_a_month_and_one_never_there_after_a_day() -> None:
    world = CoverWorld()
    kept = await world.chain()
    await world.follow(kept)
    kept.note_away()
    first = kept.held.chain.porter
    world.now += PORTER_AWAY - 1
    assert not await world.follow(kept)
    world.now += 1
    assert await world.follow(kept), "it never had the daemon"
    second, place, waybill = kept.held.chain.porter, kept.held.place, kept.held.waybill
    assert second != first
    kept.note_placed(500, 480, network_cover(world.roster).rules)
    kept.note_away()
    world.now += PORTER_AWAY
    assert not await world.follow(kept)
    world.now += CHANGED_AFTER
    kept.note_read(480)
    kept.note_away()
    assert not await world.follow(kept), "it was there again"
    world.now += PORTER_AWAY
    kept.forgive()
    assert not await world.follow(kept), "nobody answered"
    kept.note_away()
    world.now += PORTER_AWAY
    assert await world.follow(kept)
    assert kept.held.chain.porter != second
    assert kept.held.place != place
    assert kept.held.waybill.sealed != waybill.sealed
    assert world.counters["cover_chains_changed"] == 2


async def test_a_pair_that_left_is_changed_after_a_month_and_until_then_there_is_no_other_way() -> None:
    world = CoverWorld()
    kept = await world.chain()
    await world.follow(kept)
    kept.note_placed(500, 480, network_cover(world.roster).rules)
    before = kept.held.chain
    world.without(before.third)
    with pytest.raises(Refusal, match="its second or third is not listed"):
        kept.relays(world.roster)
    assert not await world.follow(kept)
    world.now += CHANGED_AFTER
    assert await world.follow(kept)
    assert kept.held.chain.porter == before.porter
    assert kept.held.chain.pair_since == world.now
    assert kept.begins is None, "another place"
    kept.relays(world.roster)


async def test_for_a_loss_the_porter_is_left_at_once_then_the_pair_and_a_restart_forgets_nothing() -> None:
    world = CoverWorld()
    kept = await world.chain()
    await world.follow(kept)
    kept.note_placed(500, 480, network_cover(world.roster).rules)
    kept.losses.score = 8.5
    kept.losses.under_way[b"a number"] = 483  # as an earlier version has them
    kept.losses.rounds[482], kept.losses.hours[484] = (1, 2), (2, 0)
    kept.losses.to_be_done[b"more"], kept.losses.first, kept.losses.is_long = 489, 480, True
    kept.note_handed_in(481)
    kept = await world.chain()
    found = kept.losses
    assert (found.score, found.under_way, found.rounds) == (8.5, {b"a nu": 483}, {482: (1, 2)})
    assert (found.to_be_done, found.hours) == ({b"more": 489}, {484: (2, 0)})
    assert (found.first, found.is_long) == (480, True)
    assert "a number" not in repr((kept.held, found))
    before = kept.held.chain
    assert await world.follow(kept, CoverLoss.LETTERS)
    assert kept.held.chain.porter != before.porter
    assert kept.held.chain.porter not in network_cover(world.roster).lists.seconds, "it may be a lane's"
    assert (kept.losses.score, kept.losses.under_way) == (0.0, {}), "another chain"
    kept.note_placed(500, 480, network_cover(world.roster).rules)
    world.now += 86_400
    kept = await world.chain()
    other = kept.held.chain
    assert await world.follow(kept, CoverLoss.LETTERS)
    assert kept.held.chain.porter == other.porter
    assert kept.held.chain.pair_lost == world.now
    for after, leaves in ((29 * 86_400 - 1, False), (1, True)):
        world.now += after
        assert await world.follow(kept, CoverLoss.LETTERS) is leaves, "a porter for it once in 30 days"


async def test_a_porter_that_is_not_listed_is_away() -> None:
    world = CoverWorld()
    kept = await world.chain()
    await world.follow(kept)
    world.without(kept.held.chain.porter)
    with pytest.raises(Refusal, match="its porter is not listed"):
        kept.relays(world.roster)
    assert kept.is_away


async def test_a_damaged_chain_is_set_aside() -> None:
    world = CoverWorld()
    await world.follow(await world.chain())
    ((key, value),) = await world.store.scan("cover-chain")  # type: ignore[arg-type]
    world.store.write_soon(Change("cover-chain", key, value[:-3]))  # type: ignore[arg-type]
    kept = await world.chain()
    assert kept.begins is None
    assert await world.store.scan("damaged")  # type: ignore[arg-type]


async def test_a_porter_that_puts_letters_off_again_is_held_to_what_it_said_before() -> None:
    world = CoverWorld()
    rules = network_cover(world.roster).rules
    kept = await world.chain()
    await world.follow(kept)
    kept.note_placed(500, 480, rules)
    kept.note_placed(490, 481, rules)
    assert kept.begins == 490, "none passed yet"
    kept.note_handed_in(490)
    kept.note_placed(600, 491, rules)
    assert kept.begins == 490
    back = 491 + rules.rounds_in(SERVED_DAYS)
    kept.note_placed(back + 100, back, rules)
    assert kept.begins == back + 100
