"""A located feed over a private Tor network, whose provider leaves out one interval of six."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import trio
from located_scene import Scene
from sockets_seen import look_at_sockets

from hushcast_located.subscriber.subscription_files import SubscriptionFiles
from hushcast_testnet import testnet

pytestmark = [pytest.mark.tor, pytest.mark.processes]

HERE = {"lat": 60.17, "lon": 24.94}
SUBSCRIBERS = ("ann", "bob", "cid", "dot")
INTERVALS, LEFT_OUT = 6, 4
INTERVAL = 12  # seconds; a message takes some over Tor, and there are two on the way
PATIENCE = 6.0  # seconds that a subscriber gives the answer that another has overtaken


async def test_an_interval_that_the_provider_leaves_out_is_caught(
    tor_testnet: Any, tmp_path: Path, capsys: Any
) -> None:
    daemons = dict(zip(("owner", "provider"), ("client-1", "client-2"), strict=True))
    daemons |= dict(zip(SUBSCRIBERS, tor_testnet.relays, strict=False))
    sockets = {who: tor_testnet.socket(name) for who, name in daemons.items()}
    tor = testnet.load(tor_testnet.directory).tor
    tor_pids = {process.pid for process in tor.processes}
    doors = {int(door.split(":")[1]) for one in tor.clients for door in (one.control, one.socks)}
    elsewhere: set[Any] = set()
    async with trio.open_nursery() as nursery:
        scene = Scene(tmp_path, nursery, sockets)
        await scene.start_provider(LEFT_OUT)
        for name in SUBSCRIBERS:
            await scene.start_subscriber(name, "shoe", PATIENCE)
        for name in SUBSCRIBERS:
            await scene.until(name, "Accepted", 1, 120)
        for number in range(1, INTERVALS + 1):
            await trio.sleep(INTERVAL - time.time() % INTERVAL)
            await scene.batch(number, INTERVAL, [HERE | {"id": f"{number}", "text": "a shoe at a discount"}])
            pids = {name: tor_testnet.pid(name) for name in daemons.values()}
            looks = [look_at_sockets(pids, tor_pids, doors)[1] for _ in range(2)]
            elsewhere |= looks[0] & looks[1]  # what came or went while the tables were read is not in both
        for name in SUBSCRIBERS:
            await scene.until(name, "Interval", INTERVALS - 1, 60)
        nursery.cancel_scope.cancel()
    await tor_testnet.forget((tmp_path / "feed.link").read_text(), daemons["provider"])
    for name in SUBSCRIBERS:
        kept = SubscriptionFiles(tmp_path / name, "feed")
        await tor_testnet.forget(kept.load().answers, daemons[name])
        kept.close()
    caught = []
    for name in SUBSCRIBERS:
        told = scene.told[name]
        found = [one for one in told if one["event"] == "Interval"]
        numbers = [one["number"] for one in found]
        assert numbers == [number for number in range(1, INTERVALS + 1) if number != LEFT_OUT]
        assert all(one["messages"] == [str(one["number"])] for one in found)
        # A slow machine tells that it is silent, before the next answer shows that it is missing.
        troubles = [one for one in told if one["event"] == "Trouble" and one["problem"] != "silent"]
        assert len(troubles) == 1, told
        trouble = troubles[0]
        said = trouble["problem"], trouble["first"], trouble["last"]
        assert said == ("missing interval", LEFT_OUT, LEFT_OUT), told
        # Within an interval of the moment from which it can be noticed: the next answer.
        assert told.index(trouble) < told.index(found[numbers.index(LEFT_OUT + 1)])
        caught.append(trouble["at"] - scene.published[LEFT_OUT + 1])
    assert max(caught) < INTERVAL
    assert not scene.strange
    assert not elsewhere
    with capsys.disabled():
        print(f"\nover Tor: caught {min(caught):.1f} to {max(caught):.1f} s after the next interval's batch")
