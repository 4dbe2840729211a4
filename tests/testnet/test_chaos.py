"""Chaos on real daemons: what `make soak` does for long, for a minute."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from hushcast_runtime.storage.state_lock import holder
from hushcast_testnet import processes, testnet
from hushcast_testnet.chaos.breaker import ProcessBreaker
from hushcast_testnet.chaos.chaos_run import Chaos, run_chaos
from hushcast_testnet.chaos.fault_plan import KINDS, Fault
from hushcast_testnet.inventory import describe
from hushcast_testnet.layouts import broker_names
from hushcast_testnet.path_proxy import PathProcess
from hushcast_testnet.processes import ProcessRecord

EPOCH = 60  # seconds

pytestmark = pytest.mark.processes


def test_a_minute_of_all_faults_loses_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "net"
    testnet.up(directory, 8, 2, "tcp", EPOCH, breakable=True)
    try:
        # As many faults as it takes for each kind to come.
        figures = run_chaos(directory, Chaos(minutes=1, seed=1, every=5, longest=8))
        assert set(figures["faults"]) == set(KINDS)
        assert_whole(figures)
        began = [line for line in journal(directory, 1) if line["kind"] == "begin"]
        assert len(began) == sum(figures["faults"].values())
    finally:
        testnet.down(directory)


@pytest.mark.soak
def test_twenty_kills_lose_nothing_and_repeat_nothing_acknowledged(tmp_path: Path) -> None:
    directory = tmp_path / "net"
    testnet.up(directory, 16, 4, "tcp", EPOCH)
    try:
        figures = run_chaos(directory, Chaos(1, 1, ("kill",), every=3, longest=3))
        assert figures["faults"] == {"kill": 20}
        assert_whole(figures)
    finally:
        testnet.down(directory)


@pytest.mark.soak
def test_twenty_kills_of_server_proxies_and_nodes_lose_nothing_and_show_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("kills") / "net"  # a proxy's sockets have long paths of their own
    testnet.up(directory, 6, None, "tcp", 3600, carrier="central")  # no day ends within
    try:
        # With this seed each of the three that serve the nodes is killed twice.
        figures = run_chaos(directory, Chaos(0.3, 1, ("kill",), every=0.9, longest=1.5, rate=6))
        assert figures["daemons"] == 9
        assert figures["faults"] == {"kill": 20}
        killed = {line["daemon"] for line in journal(directory, 1) if line["kind"] == "begin"}
        assert killed >= {"server", "publications-1", "deliveries-1"}
        assert_whole(figures, receipts=20)  # in 18 seconds, with a third of the daemons away
    finally:
        testnet.down(directory)


@pytest.mark.soak
def test_kills_of_brokers_and_nodes_lose_nothing_and_show_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("kills") / "net"
    testnet.up(directory, 6, None, "tcp", 3600, carrier="brokers")
    try:
        # With this seed each broker is killed.
        figures = run_chaos(directory, Chaos(0.2, 2, ("kill",), every=0.9, longest=1.5, rate=6))
        killed = {line["daemon"] for line in journal(directory, 2) if line["kind"] == "begin"}
        assert killed >= {name for name, _, _ in broker_names(3)}
        assert_whole(figures, receipts=12)
    finally:
        testnet.down(directory)


def assert_whole(figures: dict, receipts: int = 60) -> None:
    assert figures["receipts"] > receipts
    assert figures["delivered"] == figures["pairs"]
    assert figures["losses"] == []
    assert figures["duplicated"] == 0
    assert figures["unhealthy"] == {}
    assert figures["ok"] is True


def journal(directory: Path, seed: int) -> list[dict]:
    lines = (directory / "chaos" / f"seed-{seed}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


async def test_each_fault_comes_and_goes(small: Path) -> None:
    net = testnet.load(small)
    breaker = ProcessBreaker(net)
    assert list(breaker.kinds) == list(KINDS)
    member = next(member for member in net.members if member.name == "relay-2")

    def pid() -> int | None:
        return holder(Path(member.state))

    def state() -> str:
        return Path(f"/proc/{pid()}/stat").read_text().rpartition(")")[2].split()[0]

    for kind in ("stop", "kill"):
        before = pid()
        await breaker.begin(Fault(kind, "relay-2", 0, 1))
        assert pid() is None
        await breaker.end(Fault(kind, "relay-2", 0, 1))
        await until_ready(member)
        assert pid() not in (None, before)
    before = pid()
    await breaker.begin(Fault("restart", "relay-2", 0, 0))
    await breaker.end(Fault("restart", "relay-2", 0, 0))
    await until_ready(member)
    assert pid() not in (None, before)
    await breaker.begin(Fault("pause", "relay-2", 0, 1))
    with trio.fail_after(10):
        while state() != "T":  # noqa: ASYNC110 - the kernel stops it in its own time
            await trio.sleep(0.01)
    await breaker.end(Fault("pause", "relay-2", 0, 1))
    with trio.fail_after(10):
        while state() == "T":  # noqa: ASYNC110
            await trio.sleep(0.01)
    epoch = (await describe(member))["epoch"]
    await breaker.begin(Fault("skew", "relay-2", 0, 1, amount=10.0 * net.epoch))
    skewed = await describe(member)
    assert abs(skewed["clock"]["jump"] - 10 * net.epoch) <= 1
    assert skewed["epoch"] in (epoch, epoch + 1), "it goes on by the time before"
    await breaker.end(Fault("skew", "relay-2", 0, 1))
    righted = await describe(member)
    assert righted["clock"]["jump"] == 0
    assert righted["epoch"] in (epoch, epoch + 1)


async def until_ready(member: testnet.Member) -> None:
    with trio.fail_after(30):
        while not (await describe(member)).get("ready"):  # noqa: ASYNC110
            await trio.sleep(0.05)


@pytest.fixture
def small(tmp_path: Path):
    directory = tmp_path / "small"
    testnet.up(directory, 3, 1, "tcp", 10, breakable=True)
    yield directory
    testnet.down(directory)
    path = testnet.load(directory).path
    assert isinstance(path, PathProcess)
    assert not processes.is_running(ProcessRecord(path.process.name, path.process.pid, path.process.started))
