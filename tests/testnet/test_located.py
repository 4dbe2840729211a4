"""A located feed through real daemons over loopback: owner, provider and subscriber are processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from located_scene import Scene

from soak.located_feed import FeedPlan, play_feed

pytestmark = pytest.mark.processes

HERE = {"lat": 60.17, "lon": 24.94}


async def test_batches_reach_a_subscriber_verified(tcp_testnet: Any, tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        daemons = {"owner": "client-1", "provider": "client-2", "ann": tcp_testnet.relays[0]}
        sockets = {who: tcp_testnet.socket(name) for who, name in daemons.items()}
        scene = Scene(tmp_path, nursery, sockets)
        await scene.start_provider()
        await scene.start_subscriber("ann", "shoe", 30)
        await scene.until("ann", "RequestAccepted", 1, 60)
        large = [HERE | {"id": f"large {at}", "text": "shoe " + "x " * 30_000} for at in range(20)]  # 1.2 MB
        for number, said in ((1, []), (2, large)):
            await scene.batch(number, 300, said)
        found = await scene.until("ann", "Interval", 2, 120)
        assert [one["number"] for one in found] == [1, 2]
        assert [len(one["messages"]) for one in found] == [0, 20]
        assert not [one for one in scene.told["ann"] if one["event"] == "FeedTrouble"]
        nursery.cancel_scope.cancel()
    assert not scene.strange


async def test_an_owner_that_is_killed_and_takes_another_key_leaves_nothing_out(
    tcp_testnet: Any, tmp_path: Path
) -> None:
    daemons = {"owner": "client-1", "provider": "client-2", "subscriber": tcp_testnet.relays[0]}
    sockets = {who: tcp_testnet.socket(name) for who, name in daemons.items()}
    plan = FeedPlan(intervals=8, seconds=3, alerts=6, away=1.0)
    figures = await play_feed(tmp_path / "feed", sockets, plan, print)
    assert figures.problems == []
    assert (figures.kills, figures.keys, figures.alerts) == (2, 2, 48)
    assert figures.told == {"storm": 16, "台風": 16, "น้ำ": 16}
