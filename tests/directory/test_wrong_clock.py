"""What relays and directory did while its clock was wrong does not outlast that."""

from __future__ import annotations

import pytest
import trio
from directory_bench import BEGIN, CALENDAR, DIRECTORY, EPOCH, Bench, relay_seed

from hushcast_overlay.relay.registration import VALIDITY
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.signatures import Signed

MONTH = 30 * 24 * EPOCH
RELAYS = range(3)


class Case:
    """A directory that stands still, with its first roster, and relays' descriptors."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.bench = Bench(nursery, 1)

    async def begin(self) -> Case:
        await self.read()
        for number in RELAYS:
            await self.admit(self.descriptor(number, BEGIN), BEGIN)
        await self.bench.publish(BEGIN)
        return self

    async def read(self) -> None:
        """Have it read what is kept."""
        await self.bench.make()
        self.bench.agreeing.address = memory_address(DIRECTORY.public())
        await self.bench.agreeing._load()

    async def take_back(self, now: float) -> list[int]:
        """Have it take back what is for a time to come; return the epochs of these heads."""
        machine = self.bench.agreeing.machine
        assert machine is not None
        ahead = await self.bench.agreeing._ahead.take_back(machine.kept, now)
        assert ahead is not None
        await self.bench.agreeing._load()
        return list(ahead)

    def descriptor(self, number: int, now: float) -> Signed:
        return self.bench.descriptor(number, issued=int(now), expires=int(now) + VALIDITY * EPOCH)

    async def admit(self, signed: Signed, now: float) -> None:
        roll = self.bench.roll
        await roll.admit(roll.examine(signed, now), signed)

    async def listed_later(self, epochs: int) -> set[int]:
        """Return the relays that are listed some epochs on, where only 1 and 2 renew."""
        for epoch in range(CALENDAR.epoch(BEGIN) + 1, CALENDAR.epoch(BEGIN) + epochs):
            now = CALENDAR.epoch_start(epoch) - CALENDAR.lead
            for number in RELAYS[1:]:
                await self.admit(self.descriptor(number, now), now)
            await self.bench.publish(now)
        newest = self.bench.newest
        assert newest is not None
        return {number for number in RELAYS if relay_seed(number).public() in newest.relays}


@pytest.mark.parametrize("restarts", [False, True])
async def test_descriptors_for_a_time_to_come_are_forgotten(restarts: bool) -> None:
    """Relays and directory had the same wrong time service for a while."""
    async with trio.open_nursery() as nursery:
        case = await Case(nursery).begin()
        for number in RELAYS:
            await case.admit(case.descriptor(number, BEGIN + MONTH), BEGIN + MONTH)
        await case.bench.publish(BEGIN + MONTH)
        assert await case.take_back(BEGIN + 1)
        if restarts:
            await case.read()
        assert await case.listed_later(8) == {1, 2}


async def test_they_are_forgotten_where_no_roster_was_signed() -> None:
    async with trio.open_nursery() as nursery:
        case = await Case(nursery).begin()
        for number in RELAYS:
            await case.admit(case.descriptor(number, BEGIN + MONTH), BEGIN + MONTH)
        assert await case.take_back(BEGIN + 1) == []
        assert await case.listed_later(8) == {1, 2}


async def test_who_was_carried_by_a_wrong_clock_is_not_carried_for_long() -> None:
    async with trio.open_nursery() as nursery:
        case = await Case(nursery).begin()
        due = CALENDAR.epoch_start(CALENDAR.epoch(BEGIN + MONTH)) - CALENDAR.lead
        case.bench.roll.carry(relay_seed(0).public(), due)
        await case.bench.publish(due)
        assert await case.take_back(BEGIN + 1)
        assert await case.listed_later(8) == {1, 2}
