"""Whoever makes up clients of an edge broker attaches each once, and wants them to count from then on.

So a filter is shown that nobody but one stands behind.
"""

from __future__ import annotations

import trio
from small_network import until
from small_tree import Client, small_tree

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.frames import AnonymityTerms, ExposureReport

FOUR = AnonymityTerms(4, AnonymityCondition.IMMEDIATE_PREDECESSOR, "wait")


async def test_who_was_there_once_counts_no_longer_than_a_day() -> None:
    async with small_tree() as network:
        edge = network["edge 1"]
        made_up: list[Client] = []
        for where in ("lat in [0, 90]", "lat in [30, 31]", "lat in [50, 51]", "lat in [60, 61]", "lat = 70"):
            made_up.append(await network.client(edge))
            assert await made_up[-1].subscribe(where, terms=FOUR) == "accepted"
        victim = await network.client(edge)
        assert await victim.subscribe("lat in [10, 11]", terms=FOUR) == "accepted"
        await until(lambda: victim.exposed[-1:] == [ExposureReport(bytes(16), True)])
        for client in made_up:
            await client.leave()
        for _ in range(3):
            await trio.sleep(network.calendar.day_seconds)
            await victim.attach()
        await until(lambda: not victim.exposed[-1].is_shown, 1.0, "it is held back")
        assert edge.status("filters_shown") == 0
        for client in made_up:
            await client.attach()
        await until(lambda: victim.exposed[-1].is_shown, 60.0, "who is back counts again")
