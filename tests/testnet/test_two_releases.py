"""Real programs of two releases in one network: this one, and a copy of it in which a frame has changed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import next_release
import pytest
import trio
from release_change import hushcast_of, restart_as

from hushcast_protocol.base.errors import Refusal
from hushcast_testnet import processes

EPOCH = 60  # seconds: what waits for a host that restarts is seldom caught by the end of its day
SHORT_EPOCH = 10  # where several rosters are awaited, and for a whole change of the wire:
SHORTEST_EPOCH = 5
TOPIC = "two releases"
EVERY = 0.2  # seconds between two publications
TOO_OLD = "this network speaks wire 2, and this program wire 1"
WAY_OUT = "install a release that speaks it; subscriptions and what has arrived are kept"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next_release.make(tmp_path_factory.mktemp("next"))


@pytest.fixture
def net(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 4, 2, "tcp", EPOCH) as running:
        yield running


@pytest.fixture
def fast(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 4, 2, "tcp", SHORTEST_EPOCH) as running:
        yield running


@pytest.fixture
def several(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    with running_testnet(tmp_path, 3, 2, "tcp", SHORT_EPOCH, 5) as running:
        yield running


class Traffic:
    """One client publishes all the time; what was published."""

    def __init__(self, net: Any) -> None:
        self._net = net
        self.ids: set[str] = set()

    async def run(self) -> None:
        while True:
            self.ids.add(await self._net.publish("client-2", TOPIC, f"{len(self.ids)}"))
            await trio.sleep(EVERY)


async def speaks(net: Any, name: str) -> list[int]:
    return (await net.status(name))["wire"]["speaks"]


@pytest.mark.processes
@pytest.mark.parametrize(
    "before",
    [
        pytest.param(0, id="directory first"),
        pytest.param(1, id="directory second", marks=pytest.mark.soak),
        pytest.param(4, id="directory last"),
    ],
)
async def test_relays_and_directory_are_upgraded_one_by_one_under_traffic(
    net: Any, release: Path, before: int
) -> None:
    """And one of them back: what a network speaks stays as it is, so the order does not matter."""
    traffic = Traffic(net)
    async with net.listening("client-1", TOPIC) as ear, trio.open_nursery() as nursery:
        nursery.start_soon(traffic.run)
        for name in (*net.relays[:before], "directory", *net.relays[before:]):
            await restart_as(net, name, release)
        await net.end(net.relays[0])
        await hushcast_of(release, "admin", "step-back", "--config", net.member(net.relays[0]).config)
        await restart_as(net, net.relays[0], None)
        with trio.fail_after(60):  # an idle machine restarts all of them within fewer messages
            while len(traffic.ids) <= 20:  # noqa: ASYNC110 - the publisher sets no event
                await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
        await ear.until(traffic.ids)
        assert traffic.ids == ear.shown.keys(), "none lost"
        assert max(ear.shown.values()) == 1, "none twice"
    assert [await speaks(net, name) for name in net.relays] == [[1, 1], [1, 2], [1, 2], [1, 2]]
    assert (await net.status("client-1"))["wire"] == {
        "now": 1,
        "coming": None,
        "begins": None,
        "speaks": [1, 1],
    }


@pytest.mark.processes
@pytest.mark.soak
async def test_five_directories_are_upgraded_one_by_one(several: Any, release: Path) -> None:
    """And the last of them stays as it is; a roster comes in every epoch."""
    net, traffic = several, Traffic(several)
    epochs: list[int] = []

    async def watch() -> None:
        while True:
            newest = (await net.status("client-1"))["roster"]["epoch"]
            if newest not in epochs:
                epochs.append(newest)
            await trio.sleep(0.5)

    async with net.listening("client-1", TOPIC) as ear, trio.open_nursery() as nursery:
        nursery.start_soon(traffic.run)
        nursery.start_soon(watch)
        for number in range(1, 5):
            await restart_as(net, f"directory-{number}", release)
            await trio.sleep(1.5 * SHORT_EPOCH)
        nursery.cancel_scope.cancel()
        await ear.until(traffic.ids)
        assert traffic.ids == ear.shown.keys(), "none lost"
        assert max(ear.shown.values()) == 1, "none twice"
    assert len(epochs) > 5
    assert epochs == list(range(epochs[0], epochs[-1] + 1)), "one in every epoch"


@pytest.mark.processes
@pytest.mark.soak
async def test_a_network_goes_on_to_the_next_wire_without_a_relay_that_lags(fast: Any, release: Path) -> None:
    net, traffic = fast, Traffic(fast)
    lagging = net.relays[-1]
    async with net.listening("client-1", TOPIC) as ear:
        pass
    for name in ("directory", *net.relays[:-1], "client-1", "client-2"):
        await restart_as(net, name, release)
    config = Path(net.member("directory").config)
    config.write_text("wire = 2\n" + config.read_text())
    processes.send([processes.find("directory", net.pid("directory"))], signal.SIGHUP)
    async with net.listening("client-1", TOPIC) as ear, trio.open_nursery() as nursery:
        nursery.start_soon(traffic.run)
        with trio.fail_after(60 * SHORTEST_EPOCH):
            while (await net.status("client-1"))["wire"]["now"] != 2:  # noqa: ASYNC110
                await trio.sleep(1)
        await trio.sleep(3 * SHORTEST_EPOCH)
        nursery.cancel_scope.cancel()
        await ear.until(traffic.ids)
        assert traffic.ids == ear.shown.keys(), "none lost"
        assert max(ear.shown.values()) == 1, "none twice"
    status = await net.status(lagging)
    assert status["wire"]["now"] == 2
    assert status["wire"]["speaks"] == [1, 1]
    assert (await net.status("client-1"))["roster"]["relays"] == len(net.relays) - 1
    doctor = [sys.executable, "-m", "hushcast_cli.start", "doctor", "--config", net.member(lagging).config]
    told = (await trio.run_process(doctor, capture_stdout=True, check=False)).stdout.decode()
    assert f"{TOO_OLD}: {WAY_OUT}" in " ".join(told.split()), told
    with pytest.raises(Refusal, match=TOO_OLD):
        await net.publish(lagging, TOPIC, "never")
    await restart_as(net, lagging, release)
    with trio.fail_after(24 * SHORTEST_EPOCH):
        while (await net.status("client-1"))["roster"]["relays"] != len(net.relays):  # noqa: ASYNC110
            await trio.sleep(1)
