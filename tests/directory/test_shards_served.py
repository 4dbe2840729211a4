"""A network in shards: every authority serves all that a head stands for, over links, as daemons check it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import trio
from authority_bench import authority_bench
from directory_bench import CALENDAR, NETWORK, bench, relay_seed
from shards_bench import Daemon, leaf_of, network_of, served

from hushcast_protocol.authorities.directory_requests import HeadAnswer
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import HEADS_KEPT, Head
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.sharding import sharding_for
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShardAnswer,
    ShardRequest,
    ShardUnavailable,
    ShownLeaf,
    ShownSlice,
)
from hushcast_protocol.shards.slices import read_leaf, read_slice
from hushcast_runtime.storage.store import MemoryStore

Lie = Callable[[ShardAnswer, ShardAnswer], ShardAnswer]
"""What one answers instead of the truth, or of what it would have answered to another question."""

RELAYS = 12  # with four of a shard in the mean: four shards


def names(*numbers: int) -> set[bytes]:
    return {relay_seed(number).public() for number in numbers}


@pytest.mark.slow
@pytest.mark.parametrize(("count", "quorum"), [(1, 1), (3, 2)])
async def test_every_authority_serves_the_whole_network(count: int, quorum: int) -> None:
    async with authority_bench(count, quorum, RELAYS, shard_size=4) as made:
        await made.until(made.epoch + 2.2)
        (head,) = {served(one) for one in made.directories}
        sharding = sharding_for(inside_of(head).shards, head.epoch // 24)
        assert sharding is not None
        assert (sharding.bits, sharding.count) == (2, RELAYS)
        for one in made.directories:
            assert await network_of(one.client(), head, sharding) == dict.fromkeys(
                names(*range(RELAYS)), True
            )
            shown = await one.client().roster(None)
            assert isinstance(shown, HeadAnswer)
            assert (shown.seats, shown.waiting, shown.shards) == ((), (), None)
            for request in (
                AskLeaf(head.epoch + 9, sharding.day, 0),
                AskLeaf(head.epoch, sharding.day + 1, 0),
                AskLeaf(head.epoch, sharding.day, 4),
                AskSlice(sharding.day, 4),
                AskSlice(sharding.day - 1, 0),
                AskPiece(sharding.day, 1),
            ):
                with pytest.raises(Refusal, match="does not show"):
                    await one.client().part(request)


# Daemons


@pytest.mark.slow
async def test_a_daemon_takes_heads_alone_and_goes_on_with_them_after_a_restart() -> None:
    async with authority_bench(3, 2, RELAYS, shard_size=4) as made:
        await made.until(made.epoch + 2.2)
        daemon = Daemon(made)
        await daemon.keeper._catch_up()
        again = Daemon(made, daemon.store)
        await again.keeper.load()
        for one in (daemon, again):
            newest = one.keeper.newest
            assert newest is not None
            assert newest.relays == {}
            assert newest.shards == inside_of(served(made.directories[0])).shards
            terms = one.source.terms()
            assert terms is not None
            assert terms.waiting == {}
        assert daemon.counters["heads_refused"] == 0


def flipped(answer: ShardAnswer, other: ShardAnswer) -> ShardAnswer:
    assert isinstance(answer, ShownSlice)
    return ShownSlice(answer.body[:-1] + bytes((answer.body[-1] ^ 1,)))


def of_another_shard(answer: ShardAnswer, other: ShardAnswer) -> ShardAnswer:
    return other


def of_another_kind(answer: ShardAnswer, other: ShardAnswer) -> ShardAnswer:
    return ShownLeaf(b"", ())


def nothing(answer: ShardAnswer, other: ShardAnswer) -> ShardAnswer:
    return ShardUnavailable()


@pytest.mark.slow
@pytest.mark.parametrize("lie", [flipped, of_another_shard, of_another_kind, nothing])
async def test_one_that_serves_something_else_is_passed_over(lie: Lie) -> None:
    async with authority_bench(3, 2, RELAYS, shard_size=4) as made:
        await made.until(made.epoch + 2.2)
        daemon, head = Daemon(made), served(made.directories[0])
        sharding = inside_of(head).shards[0]
        wanted, other = AskSlice(sharding.day, 1), AskSlice(sharding.day, 2)
        leaf = await leaf_of(made.directories[0].client(), head, sharding, 1)
        truth = made.directories[0].agreeing.part(wanted)
        asked: list[int] = []

        def check(answer: ShardAnswer) -> None:
            assert isinstance(answer, ShownSlice)
            read_slice(answer.body, leaf, sharding, NETWORK)

        def answer(number: int, lies: bool, request: ShardRequest) -> ShardAnswer:
            asked.append(number)
            part = made.directories[number].agreeing._archive.part
            return lie(part(request), part(other)) if lies else part(request)

        for number, one in enumerate(made.directories):
            one.agreeing.part = partial(answer, number, number < 2)  # type: ignore[method-assign]
        while set(asked) != {0, 1, 2} or asked[-2:] != [0, 2]:
            assert await daemon.source.ask(wanted, check) == truth
            assert asked[-1] == 2
        refused = daemon.counters["heads_refused"]
        assert (refused > 0) == (lie in (flipped, of_another_shard))
        made.directories[2].agreeing.part = partial(answer, 2, True)  # type: ignore[method-assign]
        with pytest.raises(Refusal if lie is nothing else PeerError):
            await daemon.source.ask(wanted, check)
        assert set(asked[-3:]) == {0, 1, 2}


@pytest.mark.slow
async def test_one_that_is_dead_or_silent_is_passed_over() -> None:
    async with authority_bench(3, 2, RELAYS, shard_size=4) as made:
        await made.until(made.epoch + 2.2)
        daemon, head = Daemon(made), served(made.directories[0])
        await made.directories[0].kill()
        address = memory_address(made.directories[1].seed.public())
        made.wires.listeners.pop(address).withdraw()
        silent = await made.wires.transport().listen(made.directories[1].seed)

        async def say_nothing(stream: trio.abc.Stream) -> None:
            await trio.sleep_forever()

        made.nursery.start_soon(silent.serve, say_nothing)
        for shard in range(4):
            began = trio.current_time()
            shown = await daemon.source.ask(AskLeaf(head.epoch, inside_of(head).shards[0].day, shard))
            assert isinstance(shown, ShownLeaf)
            read_leaf(shown.leaf, shown.path, inside_of(head).shards[0], shard)
            assert trio.current_time() - began < 2 * CALENDAR.lead / 6 + 2


async def test_a_directory_alone_has_no_shards() -> None:
    async with bench(1) as made:
        keeper = made.keeper()
        with pytest.raises(Refusal, match="alone"):
            await keeper._source.ask(AskSlice(1, 0))
        with pytest.raises(Refusal, match="does not show"):
            await made.client().part(AskSlice(1, 0))


# What is kept


def every_part(head: Head, first: int) -> list[ShardRequest]:
    """What can be asked of the heads from an epoch on."""
    asked: list[ShardRequest] = []
    for sharding in inside_of(head).shards:
        shards = range(2**sharding.bits)
        asked += [
            AskLeaf(epoch, sharding.day, one) for epoch in range(first, head.epoch + 1) for one in shards
        ]
        asked += [AskSlice(sharding.day, one) for one in shards]
        asked.append(AskPiece(sharding.day, 0))
    return asked


@pytest.mark.slow
async def test_what_is_served_outlives_a_restart_though_relays_sign_anew() -> None:
    async with authority_bench(3, 2, RELAYS, shard_size=4) as made:
        await made.until(made.epoch + 2.2)
        first = made.epoch
        await made.until(first + 4.3)
        head, one = served(made.directories[0]), made.directories[0]
        asked = every_part(head, first)
        before = [one.agreeing.part(request) for request in asked]
        assert not any(isinstance(answer, ShardUnavailable) for answer in before)
        held = {signed.body for _, signed in one.agreeing._roll._descriptors.values()}
        await one.kill()
        for _, record in await one.store.scan("cut-descriptors"):
            assert not any(body in record for body in held), "relays have signed newer ones"
        await one.start()
        await trio.sleep(0.1)
        assert [one.agreeing.part(request) for request in asked] == before


@pytest.mark.slow
async def test_one_that_was_away_when_it_was_cut_is_given_the_descriptors_of_then() -> None:
    async with authority_bench(3, 2, RELAYS, shard_size=4) as made:
        await made.until(made.epoch + 4.2)
        away = made.directories[0]
        await away.kill()
        away.store = MemoryStore()  # and it lost its disk; a real one would take another key
        await made.until(made.epoch + 1.95)
        await away.start()
        await made.until(made.epoch + 2.2)
        assert away.agreeing._archive.missing == set()
        head = served(away)
        assert head == served(made.directories[1])
        assert set(await network_of(away.client(), head, inside_of(head).shards[0])) == names(*range(RELAYS))


# Days


@pytest.mark.slow
async def test_a_network_grows_into_shards() -> None:
    """Whole on its first day, in two shards on the next; a daemon goes along with every head."""
    async with authority_bench(3, 2, 4, shard_size=4) as made:
        today = made.epoch // 24
        daemon = Daemon(made)
        await daemon.until(24 * today + 3.3)
        for number in range(4, 8):
            await made.join(number)
        head = await daemon.until(24 * today + 11.3)
        assert inside_of(head).shards == ()
        assert daemon.relays == names(*range(8))
        head = await daemon.until(24 * today + 13.3)  # it is known how tomorrow is cut
        assert [(one.day, one.bits) for one in inside_of(head).shards] == [(today + 1, 1)]
        assert daemon.relays == names(*range(8))
        for one in made.directories:
            found = await network_of(one.client(), head, inside_of(head).shards[0])
            assert found == dict.fromkeys(names(*range(8)), True)
        head = await daemon.until(24 * today + 24.3)
        assert daemon.relays == set()
        for number in range(8, 10):  # who comes now is in none of them
            await made.join(number)
        head = await daemon.until(24 * today + 28.3)
        assert made.names_listed() == names(*range(10))
        for one in made.directories:
            assert set(await network_of(one.client(), head, inside_of(head).shards[0])) == names(*range(8))


@pytest.mark.slow
async def test_who_goes_is_away_and_a_network_that_shrinks_is_whole_again() -> None:
    async with authority_bench(1, 1, 5, shard_size=4) as made:
        today, (one,) = made.epoch // 24, made.directories
        daemon = Daemon(made)
        for number in range(5, 8):
            await made.join(number)
        head = await daemon.until(24 * today + 25.3)
        sharding = sharding_for(inside_of(head).shards, today + 1)
        assert sharding is not None
        assert await network_of(one.client(), head, sharding) == dict.fromkeys(names(*range(8)), True)
        made.leave()
        head = await daemon.until(24 * today + 31.3)
        sharding = sharding_for(inside_of(head).shards, today + 1)
        assert sharding is not None
        there = dict.fromkeys(names(*range(5)), True) | dict.fromkeys(names(5, 6, 7), False)
        assert await network_of(one.client(), head, sharding) == there
        head = await daemon.until(24 * today + 37.3)
        assert [(each.day, each.bits) for each in inside_of(head).shards] == [(today + 1, 1), (today + 2, 0)]
        assert daemon.relays == set()
        for epoch in range(48, 52):
            head = await daemon.until(24 * today + epoch + 0.3)
            assert sharding_for(inside_of(head).shards, today + 2) is None
            assert daemon.relays == names(*range(5))


@pytest.mark.slow
async def test_a_day_without_a_beacon_has_the_shards_of_the_day_before() -> None:
    async with authority_bench(1, 1, RELAYS, shard_size=4) as made:
        today, (one,) = made.epoch // 24, made.directories
        await made.until(24 * today + 5.5)
        await one.kill()  # while it should reveal its secret
        await made.until(24 * today + 11.9)
        await one.start()
        cuts = []
        for day in range(today + 1, today + 4):
            await made.until(24 * day + 0.3)
            head = served(one)
            sharding = sharding_for(inside_of(head).shards, day)
            assert sharding is not None
            cuts.append(sharding.day)
            assert set(await network_of(one.client(), head, sharding)) == names(*range(RELAYS))
            await made.until(24 * day + 14.3)
            for later in inside_of(served(one)).shards:
                await network_of(one.client(), served(one), later)
        assert cuts == [today, today, today + 3], "its secret is left out for a day more"
        assert len(await one.store.scan("cut")) <= 3
        assert len(await one.store.scan("cut-descriptors")) <= 3 * 4
        assert len(await one.store.scan("leaves")) == HEADS_KEPT
