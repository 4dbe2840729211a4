"""Somebody without a name asks the tomography service often, and wants to read a filter that few want.

It knows the topic, and may ask about any filter, way, k and condition, each time over another link.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import trio
from small_tree import SmallTree
from test_tomography import ServiceMember, observed_tree, settled

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.tomography.questions import TomographyAnswer

AROUND, EXACT = "lat in [0, 90]", "lat in [50, 57]"
WAYS = (("edge 1", "root"), ("edge 1", "inner 1"), ("inner 1", "root"))


async def heard(service: ServiceMember, *given: Any, **fields: Any) -> bool | None:
    """Return what is answered, if anything is."""
    try:
        answer: TomographyAnswer = await service.ask(*given, **fields)
    except Refusal:
        return None
    return answer.is_anonymous


async def rested(network: SmallTree) -> None:
    """Let the topic be asked about again."""
    await trio.sleep(600)


async def test_no_answer_tells_of_a_filter_that_four_want() -> None:
    async with observed_tree() as (network, service):
        for _ in range(4):
            await network.client("edge 1", EXACT)
        await settled()
        told = []
        for where, way, k, condition in product((EXACT, AROUND), WAYS, (4, 5), AnonymityCondition):
            told.append(await heard(service, where, k, *way, condition=condition))
            if len(told) % 8 == 0:
                await rested(network)
        assert True not in told
        assert told.count(False) == 2, "a crowd of five, on the whole way, of either"


async def test_of_a_crowd_they_are_told_and_neither_who_is_made_up_nor_what_else_is_asked() -> None:
    async with observed_tree() as (network, service):
        await network.client("edge 2", EXACT)
        bogus = await network.client("edge 1")
        assert (
            await bogus.subscribe(EXACT, terms=AnonymityTerms(5, AnonymityCondition.SOURCE, "bogus"))
            == "accepted"
        )
        await settled()
        assert await heard(service, EXACT, 5, "edge 1") is True
        assert await heard(service, EXACT, 5, "edge 1", is_real=True) is None
        assert await heard(service, EXACT, 5, "edge 1", sources=(bytes(16),)) is None
        largest = service.status("largest_k")
        answer = await service.ask(EXACT, 40, "edge 1")
        assert not answer.is_anonymous
        assert service.status("largest_k") == largest, "brokers state no more for their sake"
        assert answer.until == int(network.now) + 300, "nor does it tell when brokers have stated"


async def test_a_topic_is_asked_about_some_times_and_then_once_a_minute() -> None:
    async with observed_tree() as (network, service):
        began = network.now
        told = [await heard(service, f"lat = {n}", 5, "edge 1") for n in range(12)]
        assert told == [False] * 8 + [None] * 4
        assert network.now < began + 60
        await trio.sleep(60)
        assert [await heard(service, f"lat = {n}", 5, "edge 1") for n in range(2)] == [False, None]
        await network.client("edge 1", EXACT)
        await settled()
        assert service.says(EXACT, 1, "edge 1"), "brokers are not kept from asking"
