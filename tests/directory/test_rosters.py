"""Rosters: published ahead, chained, kept over restarts, followed by daemons, and never forked unseen."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
import trio
from directory_bench import (
    BEGIN,
    CALENDAR,
    DIRECTORY,
    EPOCH,
    NETWORK,
    Bench,
    bench,
    catch_up_with,
    followed,
    relay_seed,
)

from hushcast_directory.client.roster_source import DirectoryStatus
from hushcast_directory.server.archive import CATCH_UP
from hushcast_overlay.neighbourhood import ROSTERS_HELD
from hushcast_overlay.rosters import MAX_ABSENCE, RosterKeeper
from hushcast_protocol.authorities.directory_requests import HeadAnswer, Rosters
from hushcast_protocol.authorities.heads import HEADS_KEPT
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.roster import (
    GENESIS,
    Roster,
    RosterBody,
    RosterEntry,
    RosterView,
    SignedRoster,
    check_roster,
    check_successor,
    sign_roster,
)
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import TransportError


def is_chain(rosters: list[Roster]) -> bool:
    for last, roster in pairwise(rosters):
        check_successor(roster, last)
    return True


# Publishing


async def test_the_first_roster_waits_for_its_relays() -> None:
    async with bench(first_roster=3) as made:
        for number in range(3):
            await made.relay(number)
        await made.register(0, 1)
        await trio.sleep(EPOCH / 2)
        assert made.newest is None
        assert await made.client().roster(None) == HeadAnswer((), (), (), False, None)
        await made.register(0)  # one relay twice is one relay
        await trio.sleep(1)
        assert made.newest is None
        await made.register(2)
        await trio.sleep(1)
        newest = made.newest
        assert newest is not None
        assert set(newest.relays) == {relay_seed(number).public() for number in range(3)}
        assert newest.previous == GENESIS
        assert newest.epoch == made.epoch
        assert sorted(newest.origins) == sorted(newest.relays)


async def test_rosters_are_published_a_lead_ahead_of_their_epoch() -> None:
    async with bench(2) as made:
        first = made.epoch
        for epoch in range(first + 1, first + 5):
            await made.sleep_until_epoch(epoch, before=CALENDAR.lead + 0.5)
            assert made.newest.epoch == epoch - 1  # type: ignore[union-attr]
            await made.sleep_until_epoch(epoch, before=CALENDAR.lead - 0.5)
            assert made.newest.epoch == epoch  # type: ignore[union-attr]
        assert is_chain(made.rosters())
        assert [roster.epoch for roster in made.rosters()] == list(range(first, first + 5))


async def test_rosters_list_relays_as_long_as_their_descriptors_hold() -> None:
    async with bench(1) as made:
        await made.relay(7)
        await made.register(7)
        registered = made.now
        await trio.sleep(6 * EPOCH)
        for roster in made.rosters()[1:]:
            holds = CALENDAR.epoch_start(roster.epoch) < int(registered) + 3 * EPOCH
            assert (relay_seed(7).public() in roster.relays) == holds, roster.epoch
            assert relay_seed(0).public() in roster.relays


async def test_since_is_the_epoch_of_the_first_roster_without_a_gap() -> None:
    async with bench(1) as made:
        first = made.epoch
        await made.relay(7)
        name = relay_seed(7).public()
        await made.register(7)
        await trio.sleep(5 * EPOCH)
        assert name not in made.newest.relays  # type: ignore[union-attr]
        await made.register(7)
        again = made.epoch
        await trio.sleep(2 * EPOCH)
        since: dict[int, int] = {r.epoch: r.relays[name].since for r in made.rosters() if name in r.relays}
        assert set(since.values()) == {first + 1, again + 1}
        for roster in made.rosters()[1:]:
            assert relay_seed(0).public() in roster.origins
            if name in roster.relays:
                assert (name in roster.origins) == (roster.epoch > since[roster.epoch])


async def test_a_newcomer_is_an_origin_from_its_second_epoch_on() -> None:
    async with bench(1) as made:
        await trio.sleep(EPOCH)
        await made.relay(7)
        await made.register(7)
        listed = made.epoch + 1
        await made.sleep_until_epoch(listed + 1)
        rosters = {roster.epoch: roster for roster in made.rosters()}
        name = relay_seed(7).public()
        assert name in rosters[listed].relays
        assert name not in rosters[listed].origins
        assert name in rosters[listed + 1].origins


@pytest.mark.slow
async def test_only_so_many_rosters_are_kept() -> None:
    async with bench(1) as made:
        await trio.sleep((HEADS_KEPT + 5) * EPOCH)
        kept = made.rosters()
        assert len(kept) == HEADS_KEPT
        assert kept[-1].epoch == made.epoch
        assert len(await made.store.scan("agreed")) == HEADS_KEPT
        assert is_chain(kept)


# Restarts


async def test_a_restart_loses_nothing() -> None:
    async with bench(3) as made:
        for _ in range(4):
            await trio.sleep(EPOCH)
            await made.stop()
            before = made.rosters(), dict(made.roll._descriptors)
            await made.start()
            await trio.sleep(0.01)
            assert made.rosters()[: len(before[0])] == before[0]
            assert made.roll._descriptors.items() >= before[1].items()
        assert is_chain(made.rosters())
        assert all(len(roster.relays) == 3 for roster in made.rosters())


async def test_a_directory_read_back_goes_on_with_the_same_chain() -> None:
    async with bench(2) as made:
        await trio.sleep(2 * EPOCH)
        await made.stop()
        before = made.newest
        assert before is not None
        await made.start()
        await trio.sleep(0.01)
        assert made.newest is not None
        assert made.newest.digest == before.digest
        machine = made.agreeing.machine
        assert machine is not None
        assert machine.due_alone(CALENDAR.epoch_start(before.epoch + 1) - CALENDAR.lead - 1) is None
        due = CALENDAR.epoch_start(before.epoch + 1) - CALENDAR.lead
        check_successor(await made.publish(due), before)


async def test_a_restart_before_the_first_roster_keeps_who_registered() -> None:
    async with bench(first_roster=2) as made:
        for number in range(2):
            await made.relay(number)
        await made.register(0)
        await made.stop()
        await made.start()
        await made.register(1)
        await trio.sleep(1)
        assert made.newest is not None
        assert len(made.newest.relays) == 2


@pytest.mark.parametrize("away", [1, 2, 3, 5])
async def test_a_directory_that_was_away_goes_on_with_the_same_relays(away: int) -> None:
    """Relays could not renew their descriptors meanwhile; that is not their fault, nor are they gone."""
    async with bench(3) as made:
        keeper = made.keeper()
        made.nursery.start_soon(followed, keeper)
        await trio.sleep(2 * EPOCH)
        await made.stop()
        await trio.sleep(away * EPOCH)
        await made.start()
        await trio.sleep(3 * EPOCH)
        rosters = made.rosters()
        assert is_chain(rosters)
        assert keeper.newest is not None
        assert keeper.newest.epoch >= made.epoch
        assert rosters[-1].digest == keeper.newest.digest
        assert [len(roster.relays) for roster in rosters] == [3] * len(rosters)
        first = rosters[0].epoch
        assert all(relay.since == first for relay in rosters[-1].relays.values())


async def test_nobody_falls_out_before_there_was_time_to_renew() -> None:
    """Of four relays two keep registering; the others' time runs out while the directory is away."""
    async with bench(2) as made:
        for number in (6, 7):
            await made.relay(number)
            await made.register(number)
        await trio.sleep(2 * EPOCH)
        await made.stop()
        await trio.sleep(3 * EPOCH)
        back = made.epoch
        await made.start()
        await trio.sleep(6 * EPOCH)
        late = {relay_seed(number).public() for number in (6, 7)}
        for roster in made.rosters()[1:]:
            assert late & roster.relays.keys() == (late if roster.epoch < back + CATCH_UP else set())
            assert relay_seed(0).public() in roster.relays


# Daemons


async def follow(made: Bench, keeper: RosterKeeper) -> None:
    await keeper.load()
    await followed(keeper)


async def test_daemons_follow_and_each_asks_at_a_moment_of_its_own() -> None:
    async with bench(2) as made:
        keepers = [made.keeper(f"keeper {number}") for number in range(10)]
        for keeper in keepers:
            made.nursery.start_soon(follow, made, keeper)
        for _ in range(4):
            await made.sleep_until_epoch(made.epoch + 1)
            assert {keeper.newest.epoch for keeper in keepers if keeper.newest} == {made.epoch}
            assert {keeper.whole.current().epoch for keeper in keepers} == {made.epoch}


async def test_the_roster_in_force_is_the_epochs_own() -> None:
    async with bench(2) as made:
        keeper = made.keeper()
        made.nursery.start_soon(follow, made, keeper)
        await made.sleep_until_epoch(made.epoch + 2, before=1.0)
        assert keeper.newest is not None
        assert keeper.newest.epoch == made.epoch + 1
        assert keeper.whole.current().epoch == made.epoch


async def test_a_daemon_that_restarts_holds_what_it_held() -> None:
    async with bench(2) as made:
        store = MemoryStore()
        keeper = made.keeper(store=store)
        made.nursery.start_soon(follow, made, keeper)
        await trio.sleep(5 * EPOCH)
        again = made.keeper(store=store)
        await again.load()
        assert again.newest is not None
        assert keeper.newest is not None
        assert again.newest.digest == keeper.newest.digest
        assert again.whole.current().digest == keeper.whole.current().digest
        assert len(await store.scan("roster")) == ROSTERS_HELD


async def test_rosters_that_a_daemon_of_before_kept_are_taken_up() -> None:
    """It kept three, and not which were acted on."""
    async with bench(2) as made:
        store = MemoryStore()
        keeper = made.keeper(store=store)
        with trio.move_on_after(4 * EPOCH):
            await follow(made, keeper)
        await store.write(*(Change("roster-standing", key, None) for key, _ in await store.scan("roster")))
        await store.write(*(Change("roster", key, None) for key, _ in (await store.scan("roster"))[:-3]))
        again = made.keeper(store=store)
        await again.load()
        assert again.newest is not None
        assert keeper.newest is not None
        assert again.newest.digest == keeper.newest.digest
        assert again.held == 0
        assert again.whole.seating().kept == again.newest.relays.keys()


async def test_a_roster_that_comes_when_others_acted_on_it_is_counted() -> None:
    async with bench(2) as made:
        keeper = made.keeper()
        made.nursery.start_soon(follow, made, keeper)
        await trio.sleep(2 * EPOCH)
        assert keeper._counters["rosters_late"] == 0
        late = made.epoch + 1
        await made.sleep_until_epoch(late, before=CALENDAR.lead + 1)
        await made.stop()
        await made.sleep_until_epoch(late, before=-0.6 * EPOCH)
        await made.start()  # it watches its clock for a sixth of an epoch before it signs
        await made.sleep_until_epoch(late + 1, before=1.0)
        assert keeper.newest is not None
        assert keeper.newest.epoch > late - 1
        assert keeper._counters["rosters_late"] == 1


async def test_a_daemon_without_a_directory_keeps_its_last_roster() -> None:
    async with bench(2) as made:
        keeper = made.keeper()
        made.nursery.start_soon(follow, made, keeper)
        await trio.sleep(EPOCH)
        await made.stop()
        held = keeper.whole.current()
        await trio.sleep(10 * EPOCH)
        assert keeper.whole.current() is keeper.newest
        assert keeper.whole.current().epoch in (held.epoch, held.epoch + 1)


@pytest.mark.slow
async def test_a_daemon_a_little_behind_follows_link_by_link() -> None:
    async with bench(2) as made:
        store = MemoryStore()
        keeper = made.keeper(store=store)
        with trio.move_on_after(EPOCH):
            await follow(made, keeper)
        await trio.sleep((MAX_ABSENCE - 5) * EPOCH)
        again = made.keeper(store=store)
        with trio.move_on_after(EPOCH):
            await follow(made, again)
        assert again.newest is not None
        assert again.newest.epoch >= made.epoch
        assert again._counters["rosters_taken"] >= MAX_ABSENCE - 5


@pytest.mark.slow
async def test_a_daemon_far_behind_starts_with_the_newest() -> None:
    async with bench(2) as made:
        store = MemoryStore()
        keeper = made.keeper(store=store)
        with trio.move_on_after(EPOCH):
            await follow(made, keeper)
        await trio.sleep((MAX_ABSENCE + 20) * EPOCH)
        again = made.keeper(store=store)
        made.nursery.start_soon(follow, made, again)
        await trio.sleep(10)
        assert again.newest is not None
        assert again.newest.epoch >= made.epoch
        assert again._counters["rosters_taken"] <= 2
        await trio.sleep(3 * EPOCH)
        assert again.newest.epoch >= made.epoch
        last = made.keeper(store=store)
        await last.load()
        assert last.newest is not None
        assert last.newest.digest == again.newest.digest


# Forks


class LyingDirectory:
    """Answers with whatever rosters it is given."""

    def __init__(self, *rosters: SignedRoster) -> None:
        self.answers = list(rosters)

    async def roster(self, after: int | None) -> Rosters:
        await trio.lowlevel.checkpoint()
        if not self.answers:
            raise TransportError("nothing more to say")
        return Rosters(self.answers.pop(0).signed, bool(self.answers))


def made_roster(
    epoch: int, previous: bytes = GENESIS, by: Seed = DIRECTORY, entries: tuple[RosterEntry, ...] = ()
) -> SignedRoster:
    signed = sign_roster(by, RosterBody(NETWORK, epoch, previous, entries))
    return check_roster(signed, by.public(), NETWORK)


async def test_a_fork_is_refused() -> None:
    async with bench(first_roster=1) as made:
        epoch = made.epoch - 1  # so that none is for a time to come
        first = made_roster(epoch)
        second = made_roster(epoch + 1, first.digest)
        wrong = {
            "the same epoch again": made_roster(epoch + 1, first.digest, entries=(await entry(made),)),
            "not chained": made_roster(epoch + 2, bytes(31) + b"\x01"),
            "an older epoch": made_roster(epoch, second.digest),
            "skips one": made_roster(epoch + 2, first.digest),
            "begins anew": made_roster(epoch + 2),
        }
        for name, roster in wrong.items():
            keeper = made.keeper()
            await catch_up_with(keeper, LyingDirectory(first, second))
            with pytest.raises(AuthenticationError, match="forked"):
                await catch_up_with(keeper, LyingDirectory(roster))
            assert keeper.newest is not None, name
            assert keeper.newest.digest == second.digest, name
            await catch_up_with(keeper, LyingDirectory(made_roster(epoch + 2, second.digest)))
            assert keeper.newest.epoch == epoch + 2


async def entry(made: Bench) -> RosterEntry:
    return RosterEntry(made.descriptor(1), made.epoch)


async def test_rosters_of_another_directory_or_network_are_refused() -> None:
    async with bench(first_roster=1) as made:
        keeper = made.keeper()
        forged = made_roster(made.epoch, by=Seed(bytes(32)))
        with pytest.raises(AuthenticationError):
            await catch_up_with(keeper, LyingDirectory(forged))
        other = type(NETWORK)("another", "hardened", EPOCH)
        signed = sign_roster(DIRECTORY, RosterBody(other, made.epoch, GENESIS, ()))
        lying = LyingDirectory(SignedRoster(other, made.epoch, GENESIS, bytes(32), {}, signed))
        with pytest.raises(DecodeError):
            await catch_up_with(keeper, lying)
        assert keeper.newest is None
        with pytest.raises(Refusal, match="no roster yet"):
            keeper.whole.current()


async def test_views_are_compared_where_they_can_be() -> None:
    async with bench(first_roster=1) as made:
        epoch = made.epoch
        first = made_roster(epoch)
        second = made_roster(epoch + 1, first.digest)
        keeper = made.keeper()
        assert keeper.view() is None
        keeper.compare(RosterView(epoch, bytes(32)))  # who holds none has nothing to compare
        await catch_up_with(keeper, LyingDirectory(first, second))
        assert keeper.view() == RosterView(epoch, first.digest), (
            "the coming one would tell when it was fetched"
        )
        keeper.compare(RosterView(epoch + 1, bytes(32)))  # nor does a lie about it
        await made.sleep_until_epoch(epoch + 1)
        assert keeper.view() == RosterView(epoch + 1, second.digest)
        for harmless in (
            None,
            RosterView(epoch, first.digest),
            keeper.view(),
            RosterView(epoch + 9, bytes(32)),
        ):
            keeper.compare(harmless)
        assert keeper._counters["roster_mismatches"] == 0
        for number, lie in enumerate((RosterView(epoch, bytes(32)), RosterView(epoch + 1, first.digest)), 1):
            with pytest.raises(AuthenticationError, match="another roster"):
                keeper.compare(lie)
            assert keeper._counters["roster_mismatches"] == number
        assert made.now >= BEGIN


async def test_a_directory_that_is_being_asked_counts_as_it_answered_last() -> None:
    async with bench(first_roster=9) as made:
        source = made.keeper()._source
        assert source.reached() == DirectoryStatus(1, 1)

        async def while_it_is_asked() -> DirectoryStatus:
            async with trio.open_nursery() as nursery:

                @nursery.start_soon
                async def ask() -> None:
                    with suppress(TransportError):
                        await source.fetch(None, None)

                await trio.sleep(0.1)
                return source.reached()

        assert await while_it_is_asked() == DirectoryStatus(1, 1)
        await made.stop()
        assert await while_it_is_asked() == DirectoryStatus(1, 1)
        assert source.reached() == DirectoryStatus(1, 0)
        await made.start()
        assert await while_it_is_asked() == DirectoryStatus(1, 0)
        assert source.reached() == DirectoryStatus(1, 1)
