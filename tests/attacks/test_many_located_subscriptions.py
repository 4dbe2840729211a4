"""Subscribers of a located feed come and withdraw until a large provider is full, so that each batch, day and
request holds up all others."""

from __future__ import annotations

from functools import partial

import pytest
import trio
from spatial_world import OWNER, SECONDS, START
from steps import one_step

from hushcast_located.service.provider_store import ProviderStore
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.subscription_register import (
    RegisteredSubscription,
    SubscriptionRegister,
    WithdrawnSubscription,
)
from hushcast_protocol.spatial.weight_table import sign_table
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore

MANY = 20_000  # of a million that a configuration allows
WANTED = LocatedSubscription((0, 0, 2**30), ("ba",), 0, 0)


def name(number: int) -> bytes:
    return digest(Domain.PROOF, number.to_bytes(8, "big"))


def full(until: int) -> SubscriptionRegister:
    register = SubscriptionRegister(MANY)
    for number in range(MANY):
        register.restore(name(number), RegisteredSubscription(1, until, "link", WANTED, 0))
        register.restore(name(MANY + number), WithdrawnSubscription(1, until + number % 2))
    return register


@pytest.mark.slow
async def test_batches_and_days_are_done_in_short_steps() -> None:
    store, env = MemoryStore(), simulated_environment(1)
    shelf = ProviderStore(store, env, OWNER.public(), SubscriptionRegister(MANY), 900.0)
    await shelf.load()
    shelf.register = full(shelf.today - 1)
    table = sign_table(OWNER, 1, {}, 1, chord(100))
    data = encode(make_batch(OWNER, BatchInterval(START, SECONDS, None), table, 2, ()))
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
            register.restore(name(2 * MANY + number), WithdrawnSubscription(1, 50))
            spared = register.spare()
            assert spared is not None
            assert register.get(spared) is None
