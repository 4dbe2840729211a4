"""A relay's work: looked for while the authorities ask for it, kept, and renewed in time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from hushcast_directory.client.roster_source import SeatTerms
from hushcast_overlay.relay.name_work import RelayNameWork
from hushcast_protocol.authorities import name_work as work_module
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.name_work import RENEWED, is_worth
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.store import MemoryStore

NETWORK, RELAY = b"n" * 32, b"r" * 32
TRY = 0.1  # seconds


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "WORK_OPERATIONS", 1)
    monkeypatch.setattr(work_module, "WORK_MEMORY", 8192)


class Heads:
    """What the newest head says, and who waits for the next."""

    def __init__(self, asked: SeatTerms | None) -> None:
        self.asked = asked
        self._lot = trio.lowlevel.ParkingLot()

    def tell(self, asked: SeatTerms | None) -> None:
        self.asked = asked
        self._lot.unpark_all()


def slow_environment() -> Environment:
    env = simulated_environment("working")

    async def compute(function: Callable[..., Any], *args: Any) -> Any:
        await trio.sleep(TRY)
        return function(*args)

    return Environment(env.now, env.randomness, compute)


@asynccontextmanager
async def working(heads: Heads, store: MemoryStore, relay: bytes = RELAY) -> AsyncIterator[RelayNameWork]:
    made = RelayNameWork(NETWORK, relay, slow_environment(), store, lambda: heads.asked, heads._lot.park)
    await made.load()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.run)
        await trio.testing.wait_all_tasks_blocked()
        yield made
        nursery.cancel_scope.cancel()


def asked(bits: int, day: int = 100, epoch: int = 24 * 100) -> SeatTerms:
    return SeatTerms(epoch, SeatAdmission(work=bits), Beacon(day, bytes([day]) * 32), {})


async def test_nothing_is_looked_for_unless_it_is_asked_for() -> None:
    heads = Heads(None)
    async with working(heads, MemoryStore()) as made:
        heads.tell(asked(0))
        await trio.sleep(100)
        assert made.work is None
        assert made.search is None


async def test_it_is_found_with_half_of_a_core_and_kept() -> None:
    heads, store = Heads(asked(5)), MemoryStore()
    async with working(heads, store) as made:
        await trio.sleep(10.5 * TRY)
        assert made.search is not None
        assert made.search.tries == 5  # each with as long a rest
        assert made.search.expected == pytest.approx(32 * 2 * TRY)
        await made.done()
        assert made.work is not None
        assert is_worth(made.work, NETWORK, RELAY, 5)
        await trio.testing.wait_all_tasks_blocked()
        assert made.search is None
        found = made.work
    async with working(heads, store) as made:
        assert made.work == found
        assert made.search is None
    async with working(heads, store, b"s" * 32) as made:  # another name has none
        assert made.work is None


async def test_a_search_goes_on_with_the_newest_beacon() -> None:
    heads = Heads(asked(7))
    async with working(heads, MemoryStore()) as made:
        await trio.sleep(3 * TRY)
        heads.tell(asked(7, day=101))
        await made.done()
        assert made.work is not None
        assert made.work.beacon.day == 101


async def test_it_is_renewed_in_time_and_when_more_is_asked_for() -> None:
    heads = Heads(asked(2))
    async with working(heads, MemoryStore()) as made:
        await made.done()
        first = made.work
        heads.tell(asked(2, day=99 + RENEWED, epoch=24 * (100 + RENEWED) - 1))
        await trio.sleep(100)
        assert made.work == first
        heads.tell(asked(2, day=100 + RENEWED, epoch=24 * (100 + RENEWED)))
        assert not made.lacks()  # what there is holds for some days yet
        await trio.sleep(100)
        assert made.work is not None
        assert made.work.beacon.day == 100 + RENEWED
        heads.tell(asked(4, day=100 + RENEWED, epoch=24 * (100 + RENEWED)))
        await made.done()
        assert is_worth(made.work, NETWORK, RELAY, 4)


async def test_a_search_ends_when_nothing_is_asked_for_any_more() -> None:
    heads = Heads(asked(20))
    async with working(heads, MemoryStore()) as made:
        await trio.sleep(10)
        assert made.search is not None
        heads.tell(asked(0))
        await trio.sleep(1)
        assert made.search is None
        assert made.work is None


async def test_nothing_is_looked_for_by_a_beacon_that_is_too_old() -> None:
    """No day had one for long: what was found would have ended at once, again and again."""
    heads = Heads(asked(3, epoch=24 * (100 + RENEWED)))
    async with working(heads, MemoryStore()) as made:
        await trio.sleep(100)
        assert made.work is None
        assert not made.lacks()
        heads.tell(asked(3, day=101 + RENEWED, epoch=24 * (101 + RENEWED)))
        await made.done()
        assert made.work is not None
