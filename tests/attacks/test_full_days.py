"""A proxy's users fill what the server keeps for a day, so that to forget it at its end takes seconds."""

from __future__ import annotations

import pytest
import trio
from small_central import small_central
from steps import one_step

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.central import pseudonym_register
from hushcast_protocol.central.pseudonym_register import PseudonymRecord, PseudonymRegister
from hushcast_protocol.content.hops import Hop, HopMessage
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_runtime.storage import daily_ids
from hushcast_runtime.storage import spool as spools
from hushcast_runtime.storage.spool import Spool
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.time_slices import in_steps

CALENDAR = Calendar(60)
TODAY = 1000
OVER = CALENDAR.lapse(TODAY) + 1
MANY = 96  # pseudonyms with all tokens that one may have: to forget 24,576 takes several steps


def name(number: int) -> bytes:
    return digest(Domain.PROOF, number.to_bytes(8, "big"))


def full() -> PseudonymRegister:
    made = PseudonymRegister(CALENDAR, bytes(16))
    each = pseudonym_register.MAX_TOKENS_EACH
    for number in range(MANY):
        tokens = tuple(name(number * each + one) for one in range(each))
        made.load(name(number), PseudonymRecord(bytes(32), TODAY, bytes(32), 1, bytes(16), False, tokens))
    return made


@pytest.mark.slow
def test_pseudonyms_of_a_day_are_forgotten_in_short_steps() -> None:
    kept = full()
    going = kept.expire(OVER)
    count = 0
    while True:
        with one_step():
            step = next(going, None)
        if step is None:
            break
        count += len(step)
        assert all(one not in kept for one in step)
    assert (count, len(kept), kept.tokens) == (MANY, 0, 0)


def test_who_gave_way_between_two_steps_is_not_forgotten_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudonym_register, "_STEP", 1)
    kept = PseudonymRegister(CALENDAR, bytes(16))
    for number in range(3):
        kept.load(name(number), PseudonymRecord(bytes(32), TODAY, bytes(32), 1, bytes(16), True, ()))
    going = kept.expire(OVER)
    assert next(going) == [name(0)]
    kept._forget(name(1))
    assert list(going) == [[name(2)]]


@pytest.mark.slow
async def test_a_full_spool_is_emptied_in_short_steps() -> None:
    spool = Spool(MemoryStore())
    hops = [Hop(b"p" + name(number)) for number in range(1024)]
    for number in range(120):
        message = Message(name(number), TODAY, (bytes(16),), bytes(TRAIL_SIZE), bytes(100))
        spool.put([HopMessage(hop, message) for hop in hops])
    async with trio.open_nursery() as nursery:  # a task of the program's, each of whose steps is measured
        nursery.start_soon(in_steps, spool.expire(lambda _, day: day != TODAY))
    assert (len(spool), spool.size) == (0, 0)


async def test_what_is_acknowledged_meanwhile_is_not_forgotten_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spools, "_EXPIRED_AT_ONCE", 1)
    spool = Spool(MemoryStore())
    message = Message(name(1), TODAY, (bytes(16),), bytes(TRAIL_SIZE), bytes(100))
    placed = spool.put([HopMessage(Hop(b"p" + name(number)), message) for number in range(3)])
    async with trio.open_nursery() as nursery:

        async def expire() -> None:
            assert await in_steps(spool.expire(lambda _, day: False)) == 2

        nursery.start_soon(expire)
        spool.done([placed[2][1]])
    assert (len(spool), spool.size) == (0, 0)


async def test_a_days_end_leaves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, step in ((pseudonym_register, "_STEP"), (daily_ids, "_STEP"), (spools, "_EXPIRED_AT_ONCE")):
        monkeypatch.setattr(module, step, 1)
    async with small_central() as network:
        for _ in range(3):
            await network.subscriber(acknowledges=False)
        for _ in range(3):
            await network.publish(network.message())
        server, store = network.server.daemon, network.server.store
        assert [server.status()[key] for key in ("tokens", "deliveries_waiting")] == [3, 9]
        await trio.sleep(3 * network.calendar.day_seconds)
        assert [server.status()[key] for key in ("pseudonyms", "tokens", "deliveries_waiting")] == [0, 0, 0]
        for kind in ("pseudonym", "publication", "spool", "spool-body"):
            assert await store.scan(kind) == []
