"""Five directories as processes: two are killed, and daemons publish, hear and have each roster."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from hushcast_testnet import processes, testnet

EPOCH = 10  # seconds
DIRECTORIES = [f"directory-{number}" for number in range(1, 6)]
TOPIC = "several"


@pytest.fixture
def net(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 3, 2, "tcp", EPOCH, 5) as running:
        yield running


async def roster(net: Any) -> int:
    return (await net.status("client-1"))["roster"]["epoch"]


@pytest.mark.processes
async def test_two_of_five_are_killed_and_nothing_is_lost(net: Any) -> None:
    described = testnet.status_of(net.directory, {})["directories"]
    assert [one["name"] for one in described] == DIRECTORIES
    assert len({one["address"] for one in described}) == 5
    async with net.listening("client-1", TOPIC) as ear:
        ids = {await net.publish("client-2", TOPIC, "before")}
        dead = [processes.find(name, net.pid(name)) for name in DIRECTORIES[1:3]]
        processes.send(dead, signal.SIGKILL)
        begun = await roster(net)
        with trio.fail_after(12 * EPOCH):
            while await roster(net) < begun + 2:
                ids.add(await net.publish("client-2", TOPIC, f"{len(ids)}"))
                await trio.sleep(1)
        await ear.until(ids)
        assert ids == ear.shown.keys()
        assert max(ear.shown.values()) == 1
    status = await net.status("client-1")
    assert status["directories"]["directories"] == 5
    assert status["directories"]["fork"] is None
    assert status["counters"]["heads_refused"] == 0
