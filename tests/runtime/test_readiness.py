"""Readiness is told once and truthfully, patience is asked for before, and who hangs is silent."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from hushcast_runtime.processes.readiness import Health, ServiceManager, service_manager

PID = 4711


class Manager:
    """A service manager's end of the notification socket."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.setblocking(False)

    def heard(self) -> list[list[str]]:
        """Return the lines of each notification since the last look."""
        found = []
        while True:
            try:
                found.append(self._socket.recv(4096).decode().splitlines())
            except BlockingIOError:
                return found

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    name = f"@hushcast-test-{os.getpid()}" if request.param == "abstract" else str(tmp_path / "notify")
    manager = Manager(name)
    yield manager
    manager.close()


def connected(manager: Manager, **environment: str) -> ServiceManager:
    made = ServiceManager.of_process({"NOTIFY_SOCKET": manager.address, **environment}, PID)
    assert made is not None
    return made


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_without_a_manager_there_is_nobody_to_tell(environment: dict[str, str]) -> None:
    assert ServiceManager.of_process(environment, PID) is None


def test_what_we_start_does_not_speak_for_us(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", manager.address)
    monkeypatch.setenv("WATCHDOG_USEC", "8000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    ours = service_manager()
    assert ours is not None
    assert {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}.isdisjoint(os.environ)
    ours.close()
    assert manager.heard() == [["STOPPING=1", "STATUS=stopping"]]


@pytest.mark.parametrize(
    ("environment", "beat"),
    [
        ({}, 1.0),
        ({"WATCHDOG_USEC": "2000000"}, 0.5),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(PID)}, 0.5),
        ({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}, 1.0),
        ({"WATCHDOG_USEC": "60000000"}, 1.0),
        ({"WATCHDOG_USEC": "0"}, 1.0),
        ({"WATCHDOG_USEC": "soon"}, 1.0),
    ],
)
def test_the_beat_leaves_the_watchdog_room(
    manager: Manager, environment: dict[str, str], beat: float
) -> None:
    ours = connected(manager, **environment)
    assert ours.beat == beat
    ours.close()


async def test_readiness_is_told_once_and_only_when_it_is_true(
    manager: Manager, autojump_clock: trio.testing.MockClock
) -> None:
    ours = connected(manager)
    health = Health(False, "waiting for tor: 5 %")
    async with trio.open_nursery() as nursery:
        caught_up: list[int] = []
        nursery.start_soon(ours.keep_informed, lambda: health, lambda: caught_up.append(1))
        await trio.sleep(1.5)
        assert caught_up == []
        patience = "EXTEND_TIMEOUT_USEC=30000000"
        assert manager.heard() == [[patience, "STATUS=waiting for tor: 5 %"], [patience]]
        health = Health(True, "working")
        await trio.sleep(2)
        assert manager.heard() == [["WATCHDOG=1", "READY=1", "STATUS=working"], ["WATCHDOG=1"]]
        assert caught_up == [1]
        health = Health(False, "the directory is away")
        await trio.sleep(2)
        assert manager.heard() == [["WATCHDOG=1", "STATUS=the directory is away"], ["WATCHDOG=1"]]
        nursery.cancel_scope.cancel()
    ours.close()


async def test_what_was_not_taken_is_told_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """A manager that restarts has no socket for a moment; `READY=1` must not get lost in it."""
    ours = ServiceManager(str(tmp_path / "notify"), None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.keep_informed, lambda: Health(True, "working"))
        await trio.sleep(1.5)
        manager = Manager(str(tmp_path / "notify"))
        await trio.sleep(1)
        assert manager.heard() == [["WATCHDOG=1", "READY=1", "STATUS=working"]]
        nursery.cancel_scope.cancel()
    manager.close()
    ours.close()


async def test_a_scheduler_that_hangs_feeds_no_watchdog(manager: Manager) -> None:
    ours = connected(manager, WATCHDOG_USEC="40000")  # a beat of 10 ms
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.keep_informed, lambda: Health(True, "working"))
        with trio.fail_after(10):
            while not manager.heard():  # noqa: ASYNC110 - the socket sets no event
                await trio.sleep(0.01)
        end = time.monotonic() + 0.1
        manager.heard()
        while time.monotonic() < end:  # what a task that never yields does to all others
            pass
        assert manager.heard() == []
        nursery.cancel_scope.cancel()
    ours.close()
