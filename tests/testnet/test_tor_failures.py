"""Daemons over a real Tor that fails: tor killed under traffic, the directory away for three epochs."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import trio

import hushcast
from hushcast_testnet import processes, testnet
from hushcast_testnet.tor import private_tor

pytestmark = [pytest.mark.tor, pytest.mark.processes]

EPOCH = 20  # seconds
PAUSE = 2.0  # seconds between the publications of one daemon
HEALTHY_WITHIN = 240.0  # seconds; a next hop is tried at least once a minute
ARRIVED_WITHIN = 240.0


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory, running_testnet) -> Iterator:
    """A testnet of its own: what is done to it here would spoil the others' figures."""
    with running_testnet(tmp_path_factory.mktemp("failing"), 6, 2, "tor", EPOCH) as net:
        yield net


@dataclass
class Traffic:
    """What was published while something failed."""

    receipts: set[str] = field(default_factory=set)
    refusals: list[str] = field(default_factory=list)


@asynccontextmanager
async def traffic(net, topic: str, *publishers: str) -> AsyncIterator[Traffic]:
    """Let daemons publish until the block ends; each publication that is under way then is waited for."""
    made = Traffic()
    over = trio.Event()

    async def publish(name: str, payload: str) -> None:
        async with hushcast.connect(net.socket(name), timeout=None) as daemon:
            try:
                made.receipts.add((await daemon.publish(topic, payload)).id)
            except (hushcast.Refusal, hushcast.Waiting) as error:
                made.refusals.append(str(error))

    async def keep_publishing(name: str) -> None:
        for number in itertools.count():
            nursery.start_soon(publish, name, f"{name} {number}")
            with trio.move_on_after(PAUSE):
                await over.wait()
                return

    async with trio.open_nursery() as nursery:
        for name in publishers:
            nursery.start_soon(keep_publishing, name)
        yield made
        over.set()


async def until(condition, within: float, what: str) -> None:
    deadline = trio.current_time() + within
    while not await condition():
        assert trio.current_time() < deadline, f"not in {within} s: {what}"
        await trio.sleep(0.5)


async def all_healthy(net) -> bool:
    """Tell whether every daemon is up, has its tor, can be found, and holds a roster of about now."""
    for name in net.daemons:
        status = await net.status(name)
        tor = status["tor"]
        if not (status["ready"] and tor["connected"] and tor["circuits"]):
            return False
        if tor["published"] != tor["services"] or status["roster"]["epoch"] < status["epoch"]:
            return False
    return True


async def assert_nothing_lost(net, topic: str, made: Traffic, *listening) -> None:
    assert made.receipts
    for each in listening:
        await each.until(made.receipts, ARRIVED_WITHIN)
        missing = made.receipts - each.shown.keys()
        assert not missing, f"{len(missing)} of {len(made.receipts)} with a receipt are lost: {missing}"
        assert set(each.shown.values()) == {1}
    await until(lambda: all_healthy(net), HEALTHY_WITHIN, "every daemon is healthy")
    for name in net.daemons:
        assert (await net.status(name))["counters"]["internal_errors"] == 0


async def test_tor_is_killed_and_restarted_under_traffic(net) -> None:
    topic = "tor is killed"
    async with net.listening("client-1", topic) as one, net.listening("relay-3", topic) as two:
        async with traffic(net, topic, "client-2", "relay-1") as made:
            await trio.sleep(5)
            await kill_and_restart_tor(net)
            await until(lambda: all_healthy(net), HEALTHY_WITHIN, "every daemon is healthy")
            before = len(made.receipts)
            await until(lambda: true_when(len(made.receipts) >= before + 20), 120, "publications work again")
        assert any("tor" in reason for reason in made.refusals)  # a clear reason, and nothing else happened
        await assert_nothing_lost(net, topic, made, one, two)
    for name in net.daemons:
        log = (Path(net.member(name).config).parent / "log").read_text()
        assert "tor is away" in log
        assert "127.0.0.1" not in log


async def kill_and_restart_tor(net) -> None:
    described = testnet.load(net.directory)
    (client,) = (process for process in described.tor.processes if process.name == "tor client0")
    processes.send([client], signal.SIGKILL)
    await until(lambda: true_when(not processes.is_running(client)), 10, "tor has ended")
    for name in net.daemons:
        await until(lambda name=name: is_away(net, name), 10, "the daemon shows that tor is away")
    await trio.sleep(3)  # under traffic, with nowhere to go
    tor = await private_tor.relaunch(described.tor, client)
    changed = msgspec.structs.replace(described, tor=tor)
    (net.directory / "testnet.json").write_bytes(msgspec.json.encode(changed))  # so that `down` ends it


async def is_away(net, name: str) -> bool:
    status = await net.status(name)
    return not status["tor"]["connected"] and not status["ready"]


async def true_when(value: bool) -> bool:
    return value


async def test_the_directory_is_away_for_three_epochs(net) -> None:
    topic = "no directory"
    member = net.member("directory")
    async with net.listening("client-2", topic) as one, net.listening("relay-4", topic) as two:
        async with traffic(net, topic, "client-1", "relay-2") as made:
            process = processes.find("directory", net.pid("directory"))
            assert process is not None
            processes.send([process], signal.SIGKILL)
            await trio.sleep(3 * EPOCH)
            assert not made.refusals  # daemons work on with the roster that they hold
            command = [sys.executable, "-m", "hushcast_directory", member.config]
            await processes.launch("directory", command, Path(member.config).parent / "log")
            await until(lambda: all_healthy(net), HEALTHY_WITHIN, "every daemon is healthy")
        await assert_nothing_lost(net, topic, made, one, two)
    for name in net.daemons:
        assert (await net.status(name))["roster"]["relays"] == 6
