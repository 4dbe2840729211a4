"""The private Tor network: ports nobody else gets, processes stopped exactly, failures that leave nothing."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest
import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet import processes
from hushcast_testnet.processes import ProcessRecord
from hushcast_testnet.tor import private_tor
from hushcast_testnet.tor import tor_network as layout
from hushcast_testnet.tor.private_tor import TorNetwork


def sleeper() -> list[str]:
    return [sys.executable, "-c", "import time; time.sleep(600)"]


def record(pid: int) -> ProcessRecord:
    found = processes.find("sleeper", pid)
    assert found is not None
    return found


def test_held_ports_are_free_for_tor_and_for_nobody_else() -> None:
    with layout.held_ports(20) as ports, layout.held_ports(20) as others:
        assert len({*ports, *others}) == 40
        tor = socket.socket()
        tor.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tor.bind(("127.0.0.1", ports[0]))
        tor.listen()
        tor.close()
        with socket.socket() as ordinary, pytest.raises(OSError, match="in use"):
            ordinary.bind(("127.0.0.1", ports[1]))


async def test_stopping_ends_a_process_and_spares_a_later_one_of_its_pid() -> None:
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(partial(trio.run_process, sleeper(), check=False))
        right = record(process.pid)
        stale = replace(right, started=right.started - 1)
        assert processes.is_running(right)
        assert not processes.is_running(stale)
        await processes.stop([stale])
        assert process.poll() is None
        with trio.fail_after(30):
            await processes.stop([right])
        assert not processes.is_running(right)
        await processes.stop([right])


async def test_a_missing_tor_is_said_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="tor is not installed"):
        await private_tor.start(tmp_path / "network")


@pytest.mark.tor
async def test_a_directory_in_use_is_refused(tor_network: TorNetwork) -> None:
    with pytest.raises(UsageError, match="File exists"):
        await private_tor.start(Path(tor_network.directory))


def test_the_record_of_a_network_survives_json() -> None:
    client = layout.TorClient("127.0.0.1:1", "127.0.0.1:2")
    network = TorNetwork("/d", (ProcessRecord("relay0", 5, 6),), (client,), "/d/snippet")
    assert msgspec.json.decode(msgspec.json.encode(network), type=TorNetwork) == network


@pytest.mark.tor
def test_a_network_runs_free_of_who_started_it(tor_network: TorNetwork) -> None:
    assert len(tor_network.processes) == layout.AUTHORITIES + layout.RELAYS + 1
    for process in tor_network.processes:
        assert processes.is_running(process)
        assert os.getsid(process.pid) != os.getsid(0)
        for stream in range(3):
            assert Path(f"/proc/{process.pid}/fd/{stream}").readlink() == Path("/dev/null")


@pytest.mark.tor
def test_all_relays_are_in_the_first_consensus(tor_network: TorNetwork) -> None:
    consensus = Path(tor_network.directory, "authority0", "data", "cached-consensus").read_text()
    flags = [line.split() for line in consensus.splitlines() if line.startswith("s ")]
    assert len(flags) == layout.AUTHORITIES + layout.RELAYS
    assert all({"HSDir", "Running", "Guard"} <= set(line) for line in flags)


@pytest.mark.tor
async def test_a_start_that_fails_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[ProcessRecord] = []
    launch = private_tor._launch

    async def last_fails(node: layout.TorNode) -> ProcessRecord:
        if node.name == "relay4":
            (node.directory / "torrc").write_text("NoSuchOption 1\n")
        launched.append(await launch(node))
        return launched[-1]

    monkeypatch.setattr(private_tor, "_launch", last_fails)
    with pytest.raises(TransportError, match="relay4 did not start"):
        await private_tor.start(tmp_path / "network")
    assert len(launched) == layout.AUTHORITIES + layout.RELAYS - 1
    assert not any(processes.is_running(process) for process in launched)


@pytest.mark.tor
async def test_a_start_that_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    def cancel(percent: int, summary: str) -> None:
        if summary == "waiting for descriptors":
            scope.cancel()

    with trio.CancelScope() as scope:
        await private_tor.start(tmp_path / "network", progress=cancel)
    pids = [int(file.read_text()) for file in (tmp_path / "network").glob("*/pid")]
    assert not any(processes.find("x", pid) for pid in pids)


@pytest.mark.tor
async def test_a_client_that_ended_is_noticed(tor_network: TorNetwork) -> None:
    with layout.held_ports(2) as (control, door):
        gone = layout.TorClient(f"127.0.0.1:{control}", f"127.0.0.1:{door}")
        with pytest.raises(TransportError):
            await private_tor.wait_ready(replace(tor_network, clients=(gone,)))
