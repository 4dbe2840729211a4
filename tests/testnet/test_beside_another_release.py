"""Programs of two releases beside each other: a daemon with the library of another, and the way back."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import next_release
import pytest
import trio
from release_change import begin_and_kill, hushcast_of, program, restart_as
from running_net import LONG_EPOCH

import hushcast
from hushcast_runtime.storage.state_layout import DATABASE

pytestmark = pytest.mark.processes

TOPIC = "beside another release"
USAGE = 2  # the exit code of what a person has to change
READING = Path(__file__).with_name("reading_program.py")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next_release.make(tmp_path_factory.mktemp("next"))


@pytest.fixture
def net(running_testnet: Any, tmp_path: Path) -> Iterator[Any]:
    # A day of seconds would end while a relay is away, and with it all that waits there for its top relays.
    with running_testnet(tmp_path, 3, 2, "tcp", LONG_EPOCH) as running:
        yield running


def state(net: Any, name: str) -> tuple[int, int]:
    """Return the version of a state, and how many records it has that only the next release knows."""
    with closing(sqlite3.connect(Path(net.member(name).state) / DATABASE)) as database:
        later = database.execute("SELECT count(*) FROM records WHERE kind = 'later'").fetchone()[0]
        return int(database.execute("PRAGMA user_version").fetchone()[0]), later


@pytest.mark.parametrize("is_library_next", [True, False], ids=["library", "daemon"])
async def test_the_newer_of_library_and_daemon_is_understood(
    net: Any, release: Path, is_library_next: bool
) -> None:
    """A program that reads and commands that publish and look are of one release, daemons of the other."""
    programs = release if is_library_next else None
    for name in ("client-1", "client-2"):
        await restart_as(net, name, None if is_library_next else release)
    sockets = {name: str(net.socket(name)) for name in ("client-1", "client-2")}
    ids: list[str] = []
    reading = await trio.lowlevel.open_process(
        program(programs, str(READING), "trio", sockets["client-1"], TOPIC), stdout=subprocess.PIPE
    )
    assert reading.stdout is not None
    lines = reading.stdout
    with trio.fail_after(90):
        printed = b""
        while b"ready\n" not in printed:
            printed += await lines.receive_some()
            assert reading.poll() is None
        for text in ("one", "two", "end"):
            told = await hushcast_of(
                programs, "publish", "--socket", sockets["client-2"], "--json", TOPIC, text
            )
            ids.append(json.loads(told)["id"])
        async for part in lines:
            printed += part
        assert await reading.wait() == 0
    assert printed.decode().split() == ["ready", *ids]
    status = json.loads(await hushcast_of(programs, "status", "--socket", sockets["client-1"], "--json"))
    assert status["wire"]["speaks"] == ([1, 1] if is_library_next else [1, 2])
    assert TOPIC in await hushcast_of(programs, "subscriptions", "--socket", sockets["client-1"])


async def test_the_way_back_loses_nothing(net: Any, release: Path) -> None:
    """What waits for applications and in the outbox, subscriptions, leases and the chain: of each program."""
    kept: set[str] = set()
    topic = "and back"
    async with hushcast.connect(net.socket("client-1")) as daemon:
        with trio.fail_after(90):
            async with daemon.subscribe(topic, acknowledge="manual"):
                pass
    for number in range(5):
        kept.add(await net.publish("client-2", topic, f"before {number}"))
    names = ("directory", net.relays[0], "client-1", "client-2")
    before = {name: state(net, name)[0] for name in names}
    for name in names:
        await restart_as(net, name, release)
    assert {name: state(net, name)[0] for name in names} == {name: of + 1 for name, of in before.items()}
    assert state(net, "client-1")[1] == 1
    kept.add(await net.publish("client-2", topic, "by the next release"))
    async with hushcast.connect(net.socket("client-2")) as daemon:  # killed before any relay can have it
        kept |= {(await daemon.enqueue(topic, f"waiting {number}")).id for number in range(20)}
        await net.end("client-2", by_kill=True)
    for name in names:
        if name != "client-2":
            await net.end(name)
        config = net.member(name).config
        what = "directory" if name == "directory" else "node"
        refused = " ".join((await hushcast_of(None, "run", what, "--config", config, code=USAGE)).split())
        assert "step-back" in refused
        assert f"of version {before[name] + 1}" in refused
        await hushcast_of(release, "admin", "step-back", "--config", config)
        assert state(net, name) == (before[name], 0)
        await restart_as(net, name, None)
    kept.add(await net.publish("client-2", topic, "after"))
    shown: list[str] = []
    async with (
        hushcast.connect(net.socket("client-1")) as daemon,
        daemon.subscribe(topic, since=0, acknowledge="manual") as messages,
    ):
        with trio.move_on_after(120):
            while kept - set(shown):
                shown.append((await anext(messages)).id)
    assert sorted(shown) == sorted(kept), "none lost, none twice"


async def test_an_upgrade_that_is_killed_again_and_again_loses_nothing(net: Any, release: Path) -> None:
    """With messages in spools, for a relay that is away, and in an outbox; the state's migration included."""
    topic, upgraded = "killed", ("client-2", *net.relays[:2])
    away = net.relays[2]
    async with net.listening("client-1", topic) as ear:
        await net.end(away, by_kill=True)
        async with hushcast.connect(net.socket("client-2")) as daemon:
            sent = {(await daemon.enqueue(topic, "x" * 1000)).id for _ in range(200)}
            await trio.sleep(2)
            sent |= {(await daemon.enqueue(topic, "y" * 1000)).id for _ in range(50)}
            await net.end("client-2", by_kill=True)
        for name in net.relays[:2]:
            await net.end(name, by_kill=True)
        for name in upgraded:
            for number in range(1, 9):  # it is ready within a second
                await begin_and_kill(net, name, release, number / 8)
            await restart_as(net, name, release)
            assert state(net, name)[1] == 1, "migrated, once"
        await restart_as(net, away, None)
        await ear.until(sent, 120)
        assert sent == ear.shown.keys(), "none lost"
        assert max(ear.shown.values()) == 1, "none twice"
