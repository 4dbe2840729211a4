"""Rosters of days that are cut into shards: they list nobody, and daemons do not take that for a loss."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from directory_bench import followed

from hushcast_directory.client.roster_source import NOTHING, FetchedRoster
from hushcast_node.counters import COUNTERS
from hushcast_overlay.cut_rosters import count, is_cut
from hushcast_overlay.neighbourhood import ROSTERS_HELD
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Network, Relay, Roster
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.shards.shard_requests import AskPiece, ShownPiece
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer

NETWORK = Network("cut", "hardened", 60)
CALENDAR = NETWORK.calendar
WHOLE, CUT, AGAIN = 100, 101, 102  # the days: whole, cut, and whole again
BEGIN = CALENDAR.day_start(WHOLE) + 18.5 * 60
TRUNK = b"t" * 16
NAMES = [bytes((number,)) * 32 for number in range(1, 13)]
SHARDING = Sharding(CUT, bytes(32), 2, bytes(32), bytes(32), 2000)
WHOLE_AGAIN = Sharding(AGAIN, bytes(32), 0, bytes(32), bytes(32), 0)


def digest_of(epoch: int) -> bytes:
    return epoch.to_bytes(32, "big")


def the_roster(epoch: int) -> Roster:
    """What the directories agreed on for an epoch; from noon of a day on it says how the next is cut."""
    day, phase = divmod(epoch, EPOCHS_A_DAY)
    told = [one for one in (SHARDING, WHOLE_AGAIN) if one.day == day or (one.day == day + 1 and phase >= 12)]
    relays = {name: Relay(name, memory_address(name), bytes(32), epoch - 100) for name in NAMES}
    listed = {} if day == CUT else relays
    return Roster(NETWORK, epoch, digest_of(epoch - 1), digest_of(epoch), listed, shards=tuple(told))


class Agreed:
    """A source that has each roster from its lead on."""

    def __init__(self, now: Any) -> None:
        self._now = now

    async def load(self) -> None:
        pass

    def restored(self, record: bytes) -> Roster:
        return the_roster(int.from_bytes(record, "big"))

    def wire(self, epoch: int) -> None:
        return None

    async def fetch(self, after: int | None, held: Roster | None) -> FetchedRoster:
        await trio.lowlevel.checkpoint()
        newest = CALENDAR.epoch(self._now() + CALENDAR.lead)
        epoch = newest if after is None else after + 1
        if epoch > newest:
            return NOTHING
        return FetchedRoster(the_roster(epoch), digest_of(epoch), epoch < newest)

    def following(self, roster: Roster) -> Sequence[Change]:
        return ()

    async def compare(self, epoch: int) -> None:
        pass

    def terms(self) -> object:
        return "those of several directories"


class Followed:
    """A daemon's rosters, in a store that outlives it."""

    def __init__(self, store: MemoryStore, seed: str = "cut") -> None:
        env, self.counters = simulated_environment(seed, BEGIN), Counters(COUNTERS)
        self.now = env.now
        source: Any = Agreed(env.now)
        self.keeper = RosterKeeper(NETWORK, source, env, store, self.counters)
        fetching: Any = None  # nothing is fetched
        self.shards = Shards(None, self.keeper, source, fetching, env, store, self.counters)

    def begin_shards(self, begun: list[object]) -> None:
        """Begin with what only shards need; which tasks these are is noted, and none runs."""
        parts = self.keeper._env, self.keeper._store, self.counters, NoTracer()
        self.shards.begin(Context(*parts, lambda function, *_: begun.append(function)))

    async def until(self, day: int, phase: float) -> None:
        await trio.sleep(CALENDAR.day_start(day) + phase * 60 - self.now())


@asynccontextmanager
async def following(store: MemoryStore | None = None) -> AsyncIterator[Followed]:
    made = Followed(store or MemoryStore())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(followed, made.keeper)
        yield made
        nursery.cancel_scope.cancel()


async def test_a_roster_without_relays_is_no_loss_and_neither_is_the_next_with_all() -> None:
    async with following() as made:
        for day, phase, cut in ((WHOLE, 23.5, False), (CUT, 0.2, True), (CUT, 20, True), (AGAIN, 0.5, False)):
            await made.until(day, phase)
            newest = made.keeper.newest
            assert newest is not None
            assert newest.epoch == CALENDAR.epoch(made.now()), "the chain goes on"
            assert is_cut(newest) == cut
            assert count(newest) == (2000 if cut else len(NAMES))
            assert made.keeper.held == 0
        assert made.counters["rosters_held"] == 0
        assert made.counters["rosters_taken"] == 6 + EPOCHS_A_DAY + 1


async def test_what_only_shards_need_begins_once_with_the_first_roster_that_tells_of_a_cut() -> None:
    begun: list[object] = []
    later: list[object] = []
    async with following() as made:
        made.begin_shards(begun)
        assert begun == []
        await made.until(WHOLE, 18.7)
        assert made.shards.is_cut(CUT)
        assert len(begun) == 1, "a client has nothing of its own to hold, but to forget"
        await made.until(AGAIN, ROSTERS_HELD + 0.5)
        assert len(begun) == 1
        made.begin_shards(later)
        await made.until(AGAIN, ROSTERS_HELD + 3.5)
        assert later == [], "all rosters held tell that the network is whole"


async def test_what_is_left_of_a_cut_before_a_restart_is_looked_after_at_once() -> None:
    begun: list[object] = []
    async with following() as made:
        await made.shards.serving.keep(AskPiece(WHOLE - 1, 0), ShownPiece(b"piece", ()))
        made.begin_shards(begun)
        assert len(begun) == 1


async def test_messages_of_the_whole_day_find_its_relays_until_that_day_has_lapsed() -> None:
    async with following() as made:
        await made.until(CUT, 0.3)
        assert [made.shards.is_cut(day) for day in (WHOLE, CUT)] == [False, True]
        near = await made.shards.find(WHOLE, TRUNK)
        assert near is made.keeper.whole
        assert near is made.shards.of(WHOLE, TRUNK)
        assert near.current().epoch == CUT * EPOCHS_A_DAY - 1
        assert near.seating().listed.keys() == set(NAMES)
        assert [relay.id for relay in near.origins()] == NAMES
        await made.until(CUT, ROSTERS_HELD + 0.5)
        assert made.keeper.whole.standings == []
        assert made.shards.of(WHOLE, TRUNK) is None
        assert made.shards.relay(NAMES[0]) is None
        with pytest.raises(Refusal, match="no roster"):
            await made.shards.find(WHOLE, TRUNK)


async def test_of_a_day_that_is_whole_again_nothing_is_known_before_its_first_roster() -> None:
    async with following() as made:
        await made.until(CUT, 14)
        assert not made.shards.is_cut(AGAIN), "that is told at noon"
        assert not made.shards.knows(AGAIN)
        with pytest.raises(Refusal, match="no roster"):
            await made.shards.find(AGAIN, TRUNK)
        await made.until(CUT, 23.95)
        assert made.shards.knows(AGAIN)
        assert (await made.shards.find(AGAIN, TRUNK)).seating().listed.keys() == set(NAMES)
        await made.until(AGAIN, 0.3)
        assert made.shards.is_cut(CUT), "messages of yesterday are on their way"
        assert not made.shards.is_cut(AGAIN)
        made.shards.check_origins()


async def test_the_first_roster_may_be_of_a_cut_day_that_has_not_begun() -> None:
    made = Followed(MemoryStore())
    await made.until(CUT, -0.1)
    with pytest.raises(Refusal, match="no roster"):
        made.shards.check_relays()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(followed, made.keeper)
        await made.keeper.changed()
        assert made.keeper.newest is not None
        assert made.keeper.newest.epoch == CUT * EPOCHS_A_DAY
        made.shards.check_relays()
        made.shards.check_origins()
        with pytest.raises(Refusal, match="no roster"):
            await made.shards.find(WHOLE, TRUNK)
        nursery.cancel_scope.cancel()


async def test_before_noon_it_is_not_known_whether_tomorrow_is_cut() -> None:
    async with following() as made:
        await made.until(CUT, 11.5)
        assert made.shards.is_cut(CUT)
        assert not made.shards.knows(AGAIN)
        await made.until(AGAIN, 11.5)
        assert not made.shards.knows(AGAIN + 1)
        await made.until(AGAIN, 12.1)
        assert made.shards.knows(AGAIN + 1)
        assert not made.shards.is_cut(AGAIN + 1)


async def test_a_restart_on_the_first_hour_of_a_cut_day_finds_both() -> None:
    store = MemoryStore()
    async with following(store) as made:
        await made.until(CUT, 0.3)
        before = made.keeper
    again = Followed(store, "again")
    await again.keeper.load()
    assert before.newest is not None
    assert again.keeper.newest == before.newest
    assert again.keeper.whole.standings == before.whole.standings
    assert len(again.keeper.whole.standings) == ROSTERS_HELD - 1
    assert again.keeper.view() == before.view()
