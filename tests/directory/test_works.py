"""Works at an authority: each is checked once, strangers take no turn of relays that have a seat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from directory_bench import relay_seed

from hushcast_directory.server import name_work
from hushcast_directory.server.name_work import MAX_WORK_WAITING, NameWorkRegister
from hushcast_protocol.authorities import name_work as work_module
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.name_work import VALID, NameWork, attempt, is_worth
from hushcast_protocol.base.errors import Refusal
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.store import MemoryStore

NETWORK = b"n" * 32
BEACON, LATER = Beacon(100, b"b" * 32), Beacon(120, b"c" * 32)
EPOCH = 24 * 100 + 3
BITS = 3


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "WORK_OPERATIONS", 1)
    monkeypatch.setattr(work_module, "WORK_MEMORY", 8192)


class Checked:
    """Works, with a tenth of a second for each check, and how many were made."""

    def __init__(self, store: MemoryStore | None = None, seated: frozenset[bytes] = frozenset()) -> None:
        self.checks = self.turned_away = self.at_once = self.most = 0
        self.store = store or MemoryStore()
        env = simulated_environment("works")
        env = Environment(env.now, env.randomness, self.compute)
        self.works = NameWorkRegister(NETWORK, seated.__contains__, self.store, env, self.turn_away)
        if store is None:
            self.works.follow(EPOCH, BITS, BEACON)

    async def compute(self, function: Callable[..., Any], *args: Any) -> Any:
        self.checks += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await trio.sleep(0.1)
        finally:
            self.at_once -= 1
        return function(*args)

    def turn_away(self) -> None:
        self.turned_away += 1

    async def refusal(self, number: int, work: NameWork | None, epoch: int = EPOCH) -> str:
        with pytest.raises(Refusal) as refused:
            await self.works.show(name(number), work, epoch)
        assert not self.works.lets(name(number), epoch)
        return refused.value.reason


def name(number: int) -> bytes:
    return relay_seed(number).public()


def work_of(number: int, beacon: Beacon = BEACON, bits: int = BITS) -> NameWork:
    source = simulated_environment(f"work {number} {beacon.day}").randomness
    while (found := attempt(NETWORK, name(number), beacon, bits, source)) is None:
        pass
    return found


def worthless(number: int) -> NameWork:
    tries = (NameWork(BEACON, bytes([count]) * 8) for count in range(256))
    return next(one for one in tries if not is_worth(one, NETWORK, name(number), BITS))


async def test_work_is_checked_once_and_holds_for_thirty_days() -> None:
    made = Checked()
    for _ in range(3):
        await made.works.show(name(1), work_of(1), EPOCH)
    assert made.checks == 1
    assert made.works.lets(name(1), EPOCH)
    assert made.works.lets(name(1), 24 * (100 + VALID) + 23)
    assert not made.works.lets(name(1), 24 * (100 + VALID) + 24)
    assert not made.works.lets(name(2), EPOCH)
    made.works.follow(EPOCH, BITS + 1, BEACON)
    assert not made.works.lets(name(1), EPOCH)
    made.works.follow(EPOCH, 0, BEACON)
    assert made.works.lets(name(2), EPOCH)


async def test_what_is_wrong_is_refused_with_the_way_out() -> None:
    made = Checked()
    assert "work of 3 bits" in await made.refusal(1, None)
    assert made.checks == 0
    assert "not worth" in await made.refusal(1, worthless(1))
    assert "no beacon" in await made.refusal(1, work_of(1, Beacon(100, b"x" * 32)))
    assert "older" in await made.refusal(1, work_of(1), 24 * (100 + VALID + 1))
    made.works.follow(EPOCH, 0, BEACON)
    await made.works.show(name(1), worthless(1), EPOCH)  # where none is asked for, none is looked at
    assert made.checks == 1


async def test_who_had_a_seat_before_it_was_asked_for_has_thirty_days() -> None:
    made = Checked(seated=frozenset({name(1)}))
    await made.works.show(name(1), None, EPOCH)
    assert made.works.lets(name(1), 24 * (100 + VALID) - 1)
    again = Checked(made.store, frozenset({name(1)}))
    await again.works.load()
    again.works.follow(24 * 120, BITS, LATER)
    assert again.works.lets(name(1), 24 * (100 + VALID) - 1)
    assert "work of 3 bits" in await again.refusal(1, None, 24 * (100 + VALID))


async def test_other_work_counts_before_the_known_one_ends() -> None:
    made = Checked()
    await made.works.show(name(1), work_of(1), EPOCH)
    made.works.follow(24 * 120, BITS, LATER)
    await made.works.show(name(1), work_of(1, LATER), 24 * 120)
    assert made.works.lets(name(1), 24 * (120 + VALID))
    await made.works.show(name(1), work_of(1), 24 * 120)  # the earlier again takes nothing back
    assert made.works.lets(name(1), 24 * (120 + VALID))
    assert made.checks == 2


async def test_it_outlasts_a_restart() -> None:
    made = Checked()
    await made.works.show(name(1), work_of(1), EPOCH)
    again = Checked(made.store)
    await again.works.load()
    assert again.works.lets(name(1), EPOCH)
    await again.works.show(name(2), work_of(2), EPOCH)  # its beacon is known as well
    assert again.works.lets(name(2), EPOCH)


async def test_a_flood_of_strangers_takes_one_core_and_no_turn_of_listed_relays() -> None:
    """Worthless work of a hundred names a second: one check at once, the rest wait or are turned away."""
    made = Checked(seated=frozenset({name(200)}))
    refused = 0

    async def hand_in(number: int) -> None:
        nonlocal refused
        with pytest.raises(Refusal):
            await made.works.show(name(number), worthless(number), EPOCH)
        refused += 1

    async with trio.open_nursery() as nursery:
        for number in range(150):
            nursery.start_soon(hand_in, number)
            await trio.sleep(0.01)
        began = trio.current_time()
        await made.works.show(name(200), work_of(200), EPOCH)
        assert trio.current_time() - began <= 0.11
        assert len(made.works._waiting) <= MAX_WORK_WAITING
    assert refused == 150
    assert made.turned_away > 0
    assert made.most == 2  # one of strangers, one of relays with a seat
    assert not made.works._under_way


async def test_as_many_works_are_remembered_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_work, "MAX_PROVEN", 3)
    made = Checked()
    for number in range(1, 6):
        await made.works.show(name(number), work_of(number), EPOCH)
    held = [number for number in range(1, 6) if made.works.lets(name(number), EPOCH)]
    assert held == [3, 4, 5]
    assert len(await made.store.scan("proven")) == 3
