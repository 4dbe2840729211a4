"""Root, inner and edge broker as processes: seated, killed and restarted, one replaced, one sent away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from hushcast_brokers.broker.tree_report import ask_tree
from hushcast_brokers.broker_sections import BrokerSection
from hushcast_cli.configuration.broker_positions import admit_broker, read_broker, replace_broker
from hushcast_cli.configuration.reload import tell_daemon

pytestmark = pytest.mark.processes

WITHIN = 60.0  # seconds; measured below five, and other work may share the machine
TOP = 'role = "{role}"\nstate = "{state}"\ntransport = "tcp"\n'
MADE = '[network]\ncarrier = "brokers"\nname = "mine"\n'


class Daemon:
    """One process, with its configuration, state and log."""

    def __init__(self, directory: Path, role: str, network: str) -> None:
        self.file = directory / "config.toml"
        self.state = directory / "state"
        self._log = directory / "log"
        directory.mkdir()
        self.file.write_text(TOP.format(role=role, state=self.state) + network)
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "hushcast_brokers", str(self.file)]
            self.process = subprocess.Popen(command, stderr=log, stdout=log)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=WITHIN)

    def given(self) -> BrokerSection:
        """Return what it gave out."""
        until((self.state / "broker.toml").exists)
        return read_broker(self.state / "broker.toml")

    @property
    def log(self) -> str:
        return self._log.read_text()

    def is_connected(self, times: int) -> Callable[[], bool]:
        return lambda: self.log.count("connected to the parent") >= times

    def seen(self) -> dict[str, str]:
        """Return how it sees each broker of the tree, by its key."""
        told = trio.run(ask_tree, self.state)
        return {one.key: one.seen for one in told.brokers} if told is not None else {}


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str, str], Daemon]]:
    """Return what starts a daemon: the root first, whose network the others join."""
    daemons: dict[str, Daemon] = {}

    def one(name: str, role: str) -> Daemon:
        network = MADE if role == "root" else (daemons["root"].state / "network.toml").read_text()
        daemons[name] = Daemon(tmp_path / name, role, network)
        if role == "root":
            until((daemons[name].state / "network.toml").exists)
        return daemons[name]

    yield one
    for daemon in daemons.values():
        if daemon.process.poll() is None:
            daemon.kill()


def test_a_tree_is_made_survives_kills_and_lets_brokers_come_and_go(
    start: Callable[[str, str], Daemon],
) -> None:
    root = start("root", "root")
    inner, edge = start("inner", "inner"), start("edge", "edge")
    admit_broker(root.file, inner.given(), None)
    admit_broker(root.file, edge.given(), inner.given().key[:12])
    assert tell_daemon(root.state) is True
    for below in (inner, edge):
        until(below.is_connected(1))
    assert list(root.seen().values()) == ["this", "connected", "not seen"]
    assert list(edge.seen().values()) == ["not seen", "connected", "this"]

    network = (root.state / "network.toml").read_text()
    for daemon, kept in ((root, "network.toml"), (inner, "broker.toml")):
        before = (daemon.state / kept).read_text()
        daemon.kill()
        daemon.start()
        until(lambda daemon=daemon: daemon.log.count("running") == 2)  # type: ignore[misc]
        assert (daemon.state / kept).read_text() == before, "it is where it was"
    until(edge.is_connected(2))
    until(lambda: list(root.seen().values()) == ["this", "connected", "not seen"])

    fresh = start("fresh", "inner")
    inner.kill()
    replace_broker(root.file, inner.given().key, fresh.given())
    assert tell_daemon(root.state) is True
    until(lambda: root.seen().get(fresh.given().key) == "connected")
    until(lambda: edge.seen().get(fresh.given().key) == "connected")
    assert (root.state / "network.toml").read_text() == network

    inner.process.wait(timeout=WITHIN)
    (inner.state / "broker.key").unlink()
    inner.start()
    assert inner.process.wait(timeout=WITHIN) != 0
    assert "broker.key is gone" in inner.log, "it does not become another broker by itself"

    root.file.write_text(TOP.format(role="root", state=root.state) + MADE)
    os.kill(root.process.pid, signal.SIGHUP)
    until(lambda: len(root.seen()) == 1)
    root.file.write_text("role = 1\n")
    os.kill(root.process.pid, signal.SIGHUP)
    until(lambda: "the configuration cannot be used" in root.log)
    for daemon in (root, fresh, edge):
        daemon.kill(signal.SIGTERM)
        assert daemon.process.returncode == 0
    for daemon in (root, inner, fresh, edge):
        assert "Traceback" not in daemon.log
        assert "127.0.0.1" not in daemon.log
