"""Authorities that are killed: any two of five at any moment change nothing; three end heads for that time.

MOMENTS=200 pytest tests/directory/test_authorities_killed.py takes some minutes.
"""

from __future__ import annotations

import os

import pytest
import trio
from authority_bench import authority_bench
from directory_bench import EPOCH

pytestmark = pytest.mark.slow

MOMENTS = int(os.environ.get("MOMENTS", "10"))


async def test_any_two_of_five_are_killed_at_any_moment() -> None:
    async with authority_bench(seed=5) as made:
        await made.until(made.epoch + 2.2)
        for number in range(MOMENTS):
            two = made.random.sample(made.directories, 2)
            before = made.epoch
            await trio.sleep(EPOCH * made.random.random())
            for one in two:
                await one.kill()
                await trio.sleep(made.random.choice((0.0, EPOCH / 24 * made.random.random())))
            await trio.sleep(EPOCH * made.random.uniform(0.05, 1.5))
            for one in two:
                await one.start()
            back = made.now
            await trio.sleep(2 * EPOCH)
            assert all(one.machine.kept.assented >= made.epoch for one in two), number
            heads = {one.machine.chain.state.newest for one in made.directories}
            assert len({head.head for head in heads if head is not None}) == 1, number
            assert [len(made.heads(epoch)) for epoch in range(before, int(back / EPOCH) + 2)] == [1] * (
                int(back / EPOCH) + 2 - before
            ), number
            assert all(one.listing.seats == made.directories[0].listing.seats for one in made.directories)
            assert len(made.directories[0].listing.seats) == 3


async def test_three_killed_end_heads_until_they_are_back() -> None:
    async with authority_bench(seed=6) as made:
        await made.until(made.epoch + 2.2)
        last = made.epoch
        for one in made.directories[:3]:
            await one.kill()
        await made.until(last + 25)
        assert all(one.head is not None and one.head.epoch == last for one in made.directories[3:])
        assert all(one.server and one.server._counters["heads_missed"] >= 22 for one in made.directories[3:])
        for one in made.directories[:3]:
            await one.start()
        await made.until(last + 27.2)
        assert [len(made.heads(epoch)) for epoch in range(last + 26, last + 28)] == [1, 1]
        assert {one.listing.epoch for one in made.directories} == {last + 27}
        # Nobody lost a seat, though nobody could renew in time.
        assert {since for one in made.directories for *_, since in one.listing.seats} == {last}
