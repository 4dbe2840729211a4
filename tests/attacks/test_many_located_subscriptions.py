"""Subscribers of a located feed come and withdraw until a large provider is full, so that each batch, day and
request holds up all others."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from spatial_world import OWNER, SECONDS, START
from steps import one_step

from hushcast_located.service.shelf import Shelf
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import Interval, make_batch, read_batch
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.register import Gone, Kept, Register
from hushcast_protocol.spatial.subscription import Subscription
from hushcast_protocol.spatial.table import sign_table
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.store import MemoryStore

MANY = 20_000  # of a million that a configuration allows
WANTED = Subscription((0, 0, 2**30), ("ba",), 0, 0)


def name(number: int) -> bytes:
    return digest(Domain.PROOF, number.to_bytes(8, "big"))


def full(until: int) -> Register:
    register = Register(MANY)
    for number in range(MANY):
        register.restore(name(number), Kept(1, until, "link", WANTED, 0))
        register.restore(name(MANY + number), Gone(1, until + number % 2))
    return register


@pytest.mark.slow
async def test_batches_and_days_are_done_in_short_steps() -> None:
    store, env = MemoryStore(), simulated_environment(1)
    shelf = Shelf(store, env, OWNER.public(), Register(MANY))
    await shelf.load(900.0)
    shelf.register = full(shelf.today - 1)
    table = sign_table(OWNER, 1, {}, 1, chord(100))
    data = encode(make_batch(OWNER, Interval(START, SECONDS, None), table, 2, ()))
    _, batch, _ = read_batch(data)
    await shelf.put_batch(batch, data)
    await shelf.begin(batch)
    unanswered = await shelf.unanswered(1)
    for task in (partial(shelf.done, batch), shelf.expire):
        async with trio.open_nursery() as nursery:  # a task of the program's, each of whose steps is measured
            nursery.start_soon(task)
    assert unanswered == sorted(name(number) for number in range(MANY))
    assert shelf.newest == 1
    left = await store.scan("subscription")
    assert [key for key, _ in left] == sorted(shelf.register.names())
    assert len(left) == MANY // 2  # those that were withdrawn until today


@pytest.mark.slow
def test_a_withdrawn_name_is_spared_without_a_look_at_all_others() -> None:
    register = full(20)
    with one_step():
        for number in range(20):
            register.restore(name(2 * MANY + number), Gone(1, 50))
            spared = register.spare()
            assert spared is not None
            assert register.get(spared) is None
