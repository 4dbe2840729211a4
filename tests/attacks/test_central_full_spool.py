"""Somebody publishes while the server's spool is nearly full, to see by the verdict how many want a topic."""

from __future__ import annotations

import pytest
from small_central import OTHER, small_central
from small_network import until

from hushcast_central.server import publications
from hushcast_runtime.storage import spool

MOST = 8  # pseudonyms, in place of thousands


async def test_a_nearly_full_spool_answers_the_same_whoever_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publications, "MAX_PSEUDONYMS", MOST, raising=False)
    async with small_central() as network:
        for _ in range(3):
            await network.subscriber()
        size = len(network.message().body)
        told = set()
        for room in range(size, size + 2 * MOST * spool.REFERENCE, spool.REFERENCE // 2):
            monkeypatch.setattr(spool, "MAX_SPOOL", room)
            wanted = await network.publish(network.message())
            assert await network.publish(network.message(), OTHER) == wanted
            told.add(wanted)
            await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        assert told == {"accepted", "quota"}
