"""Strangers, or one of several directories, fill a network as far as it goes, to keep whoever asks waiting.

As many names as are held cost an attacker an address each. What all of them need at once took a directory,
or a daemon that starts, up to half a second in which it answered nobody.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
import trio
import trio.testing
from authority_bench import AuthorityBench, Directory, sets
from directory_bench import BEGIN, CALENDAR, EPOCH, NETWORK
from several_bench import FIRST, SeveralBench
from steps import Steps

from hushcast_directory.server.archive import Archive
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.exchange import Exchange
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.descriptor_exchange import (
    MAX_BATCH,
    MAX_HAVE,
    AskDescriptors,
    DescriptorBatch,
    HaveDescriptors,
    decode_peer_frame,
)
from hushcast_protocol.authorities.frames import MAX_PEER_FRAME
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.listing import MAX_WAITING, ListedCut, Listing
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import (
    MAX_SEATED,
    Descriptor,
    descriptor_digest,
    read_descriptor,
    sign_descriptor,
)
from hushcast_protocol.base.wire import Wire, encode
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.channel import accept_channel, open_channel

MOST = MAX_SEATED + MAX_WAITING
DAY = day_of(FIRST)
OWN = Seed(bytes([250]) * 32)
NOBODY = Listing(FIRST, (), ())
"""A head under which nobody has a seat."""


def unsigned(number: int, issued: float, epochs: int = 3) -> tuple[Descriptor, Signed]:
    """A descriptor as it is held once its signature was checked."""
    name = Random(number).randbytes(32)
    issued = int(issued)
    body = Descriptor(NETWORK.id, name, memory_address(name), name, issued, issued + epochs * EPOCH, 5)
    return body, Signed(encode(body), bytes(64))


def full_roll(count: int = MOST, issued: float = BEGIN) -> Roll:
    roll = Roll(NETWORK, OWN, MemoryStore())
    for number in range(count):
        roll._hold(*unsigned(number, issued))
    return roll


@pytest.mark.slow
async def test_two_directories_agree_on_ten_thousand_relays() -> None:
    count = 10_000
    async with trio.open_nursery() as nursery:
        made = AuthorityBench(nursery, ConfiguredSet(sets(2, 2), None, count), seed=1, faulty=0)
        for directory in made.directories:
            await directory.start()
        await trio.testing.wait_all_tasks_blocked()
        held = [unsigned(number, BEGIN, epochs=9) for number in range(count)]
        for directory in made.directories:
            roll = directory.agreeing._roll
            for one in held:
                roll._hold(*one)
        await made.until(made.epoch + 3)
        for directory in made.directories:
            assert directory.head is not None
            assert inside_of(directory.head).count == count
            assert inside_of(directory.head).shards[0].bits
        await restarted(made.directories[0])
        nursery.cancel_scope.cancel()


async def restarted(directory: Directory) -> None:
    """What is kept of the heads and their days is read back while it serves."""
    served = directory.agreeing.epoch
    await directory.kill()
    await directory.start()
    await trio.sleep(1)
    assert directory.agreeing.epoch == served
    assert directory.machine._listings


@pytest.mark.slow
async def test_all_that_expire_at_once_are_forgotten_some_at_a_time() -> None:
    roll = full_roll()
    await in_its_steps(roll.forget, BEGIN + 100 * EPOCH)
    assert roll.count(BEGIN) == 0


@pytest.mark.slow
async def test_those_without_a_place_after_the_first_head_go_some_at_a_time() -> None:
    roll = full_roll(12_000)
    await in_its_steps(roll.follow, NOBODY, sets(9, 7))
    await in_its_steps(roll.forget, BEGIN)
    assert roll.count(BEGIN) == roll._room < MOST / 4


@pytest.mark.slow
async def test_all_newcomers_are_drawn_and_told_some_at_a_time() -> None:
    """A day begins at a directory that a flood has filled; then its exchange with eight others does.

    To begin takes two steps at least, of which one is the longer; to follow takes several. Whatever else a
    machine does can only lengthen one of them: so the best of three counts, and each is bounded besides.
    """
    others = tuple(bytes([number]) * 32 for number in range(8))
    begun, followed = [], []
    for _ in range(3):
        roll, env = full_roll(), simulated_environment("exchange", BEGIN)
        archive, told = Archive(NETWORK.id, roll.store, env.compute), list[Wire]()
        exchange = Exchange(env, roll, archive, not_there, lambda to, frame, told=told: told.append(frame))
        begun.append(await longest_share(partial(exchange.begin, others)))
        followed.append(await longest_share(partial(roll.follow, NOBODY)))
        assert len(told) == -(-MOST // MAX_HAVE)
        await in_its_steps(roll.forget, BEGIN)
        assert len(roll._line) == roll._room
    assert min(begun) < 0.85
    assert min(followed) < 0.4


async def longest_share(work: Callable[[], object]) -> float:
    """Return which share of some work its longest step has."""
    gc.collect()
    gc.disable()  # else what all tests before have left is looked through in one of the steps
    steps, began = Steps(), time.thread_time()
    trio.lowlevel.add_instrument(steps)
    try:
        await in_its_steps(work)
    finally:
        trio.lowlevel.remove_instrument(steps)
        gc.enable()
    assert steps.longest > 0
    return steps.longest / (time.thread_time() - began)


@pytest.mark.slow
async def test_what_relays_signed_before_is_tidied_up_without_reading_it_again() -> None:
    roll = full_roll()
    for later in range(1, 3):
        for number in range(MOST):
            roll._hold(*unsigned(number, BEGIN + later))
    before = len(roll._by_digest)
    await in_its_steps(roll.forget, BEGIN)
    assert len(roll._by_digest) < before / 2
    assert roll.find(descriptor_digest(unsigned(0, BEGIN + 2)[1].body)) is not None


async def in_its_steps(work: Callable[..., object], *args: object) -> None:
    """Have a task of the program's own do it: its steps are measured."""
    gc.collect()  # else one of them looks through all that the test made; a daemon does so as it begins
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, *args)  # type: ignore[arg-type]


async def test_descriptors_of_one_read_that_are_refused_keep_nobody_waiting() -> None:
    """A directory gives relays' descriptors that have expired, of which three frames come in one read."""
    async with trio.open_nursery() as nursery:
        made = AuthorityBench(nursery, ConfiguredSet(sets(2, 2), None, 1), seed=1, faulty=1)
        (directory,), (attacker,) = made.directories, made.liars
        await directory.start()
        await trio.testing.wait_all_tasks_blocked()
        given = dict(expired(number) for number in range(3 * MAX_BATCH))
        names = {known: read_descriptor(signed.body).relay for known, signed in given.items()}
        asked: list[AskDescriptors] = []

        async def hear(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, attacker, made.env.randomness, MAX_PEER_FRAME)
            channel, _ = await accept_channel(stream, link, decode_peer_frame)
            while frames := await channel.receive():
                asked.extend(frame for frame in frames if isinstance(frame, AskDescriptors))

        transport = made.wires.transport()
        nursery.start_soon((await transport.listen(attacker)).serve, hear)
        home, key = memory_address(directory.seed.public()), directory.seed.public()
        link = Link.initiate(NETWORK.id, key, made.env.randomness, MAX_PEER_FRAME, identity=attacker)
        channel, _ = await open_channel(transport, home, "", link, decode_peer_frame)
        await channel.send(HaveDescriptors(tuple((names[known], known, int(made.now)) for known in given)))
        await trio.sleep(5)
        assert sum(len(frame.digests) for frame in asked) == 3 * MAX_BATCH
        await channel.send(
            *(DescriptorBatch(tuple(given[known] for known in frame.digests)) for frame in asked)
        )
        await trio.sleep(5)
        assert not any(directory.agreeing._exchange._queues.values())
        assert directory.agreeing._roll.count(0) == 0
        nursery.cancel_scope.cancel()


def expired(number: int) -> tuple[bytes, Signed]:
    """A relay's descriptor by its digest."""
    seed, then = Seed(Random(number).randbytes(32)), int(BEGIN - 10 * EPOCH)
    name = seed.public()
    body = Descriptor(NETWORK.id, name, memory_address(name), name, then, then + EPOCH, 5)
    signed = sign_descriptor(seed, body)
    return descriptor_digest(signed.body), signed


@pytest.mark.slow
async def test_eight_others_are_asked_for_all_of_two_days_one_after_the_other() -> None:
    roll, env = Roll(NETWORK, OWN, MemoryStore()), simulated_environment("exchange", BEGIN)
    archive = Archive(NETWORK.id, roll.store, env.compute)
    told: list[Wire] = []

    exchange = Exchange(env, roll, archive, not_there, lambda to, frame: told.append(frame))
    listing = Listing(FIRST, (), (), (drawn(DAY), drawn(DAY + 1)))
    archive._days.follow(FIRST, await archive._days.made(listing, {}.get))
    others = tuple(bytes([number]) * 32 for number in range(8))
    await in_its_steps(exchange.begin, others)
    assert len(told) == len(others) * -(-MOST // MAX_BATCH)


async def not_there(descriptor: Descriptor, listed: bool) -> None:
    raise Refusal("it is not there")


def drawn(day: int) -> ListedCut:
    random = Random(day)
    seats = sorted((random.randbytes(32), random.randbytes(16), 0) for _ in range(MAX_SEATED))
    return ListedCut(day, bytes(32), 7, tuple(seats))


@pytest.mark.slow
async def test_all_that_could_not_renew_in_a_flood_are_checked_some_at_a_time() -> None:
    async with trio.open_nursery() as nursery:
        made = AuthorityBench(nursery, ConfiguredSet(sets(1, 1), None, 1), seed=1, faulty=0)
        (directory,) = made.directories
        await directory.start()
        await trio.testing.wait_all_tasks_blocked()
        server = directory.server
        assert server is not None
        names = []
        for number in range(MAX_SEATED):
            one = unsigned(number, BEGIN)
            server._roll._hold(*one)
            names.append(one[0].relay)
        seats = tuple((name, bytes(16), 0, FIRST) for name in sorted(names))
        await server._roll.follow(Listing(CALENDAR.epoch(BEGIN), seats, ()))
        server._flooded = True
        with trio.move_on_at(trio.current_time() + 3 * EPOCH):
            await made.until(made.epoch + 3)
            await in_its_steps(server._carry_on)
        nursery.cancel_scope.cancel()


async def test_rosters_are_read_back_one_apart_from_the_other() -> None:
    """A relay starts again in a network of hundreds."""
    count, world = 150, SeveralBench(1, 1)
    daemon = world.daemon()
    await trio.sleep(5 * EPOCH)
    for epoch in range(FIRST, FIRST + 5):
        world.truth.agree(epoch, range(count))
        await daemon.catch_up()
    again = world.daemon(daemon.store)
    await in_its_steps(again.keeper.load)
    assert again.keeper.newest is not None
    assert len(again.keeper.newest.relays) == count
    assert len(again.keeper.rosters()) == 5
