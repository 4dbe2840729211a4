"""A reader under cover is killed at drawn moments while messages come: each has one place in its inbox."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from covered_network import covered_authors
from late_disk import LateDisk
from lettered_network import ROUND
from reader_scene import a_lane, published, told
from small_network import Ear, until

from hushcast_overlay.routes.cover.covered_reader import CoveredReader

pytestmark = pytest.mark.slow

KILLS = 12
COMMITTED = 0.3  # seconds within which what a round's blocks brought is on disk


class Places:
    """Where in the inbox applications saw messages, over all lives of a daemon."""

    def __init__(self) -> None:
        self.of: dict[bytes, int] = {}

    def see(self, ear: Ear) -> None:
        for number, message in zip(ear.numbers, ear.heard, strict=True):
            assert self.of.setdefault(message.payload, number) == number, "it was shown at another place"


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 17))])
async def test_nothing_is_lost_or_shown_twice_whenever_a_reader_is_killed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve kills each, in all seeds two hundred; half of them as blocks are being written."""
    came = trio.Event()
    take = CoveredReader.take

    def taken(reader: CoveredReader, blocks: Any) -> None:
        nonlocal came
        take(reader, blocks)
        came.set()
        came = trio.Event()

    monkeypatch.setattr(CoveredReader, "take", taken)
    async with covered_authors(1, reads=True, seed=seed) as (net, (reader,)):
        ear = await reader.reading()
        await a_lane(reader)
        ear.close()
        await reader.stop()
        disk = reader.store = LateDisk(reader.store, net.env)
        await reader.start()
        ear, places = await reader.reading(), Places()
        sent = []
        for number in range(KILLS):
            sent.append(b"%d" % number)
            await published(net, sent[-1])
            if number % 2:
                await came.wait()
                await trio.sleep(net.env.uniform(0.0, COMMITTED))
            else:
                await trio.sleep(net.env.uniform(0.0, 2 * ROUND))
            ear.close()  # else it would write on the disk of the next life
            places.see(ear)
            await reader.stop()
            await trio.sleep(net.env.uniform(0.0, ROUND / 2))
            await reader.start()
            ear = await reader.reading()

        def are_all_there() -> bool:
            places.see(ear)
            return len(places.of) == len(sent)

        await until(are_all_there, 16 * ROUND, "all were heard")
        await trio.sleep(6 * ROUND)  # they are said again
        assert are_all_there()
        assert sorted(places.of) == sorted(sent)
        assert told(reader)["cursor"] == len(sent), "none has two places"
        assert ear.feed.lost() == 0
        assert disk.lost, "some kills came before what was written was on disk"
