"""A daemon under cover whose stamps or links take longer than a round leaves: they are there for the next."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from covered_network import covered_network
from lettered_network import PLACE_BITS, ROUND
from small_network import until

from hushcast_overlay.connector import Connector

pytestmark = pytest.mark.slow

# Seconds: a link is opened two fifths of a round before its moment, and has to be there at 21 of 24 s.
OPENS_IN, MINTED_IN = 23.0, ROUND / 2


async def test_a_link_that_opens_too_late_for_a_round_is_there_for_the_next() -> None:
    async with covered_network() as (_, author):
        author.line.takes = OPENS_IN
        await author.restart()
        await until(lambda: author.told["rounds"] >= 3, 6 * ROUND, "letters go")
        assert author.told["missed"] <= 1
        assert author.told["porter"] == "there"


async def test_a_stamp_for_a_place_that_takes_longer_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, mint = 0, Connector.mint

    async def slow(connector: Connector, relay: Any, content: bytes, bits: int) -> Any:
        nonlocal made
        if bits == PLACE_BITS:
            made += 1
            await trio.sleep(MINTED_IN)
        return await mint(connector, relay, content, bits)

    monkeypatch.setattr(Connector, "mint", slow)
    async with covered_network() as (_, author):
        assert author.told["missed"] <= 1
        assert made == 1
