"""Two edge brokers with two clients each, as processes, have four by the tomography service alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_broker_processes import MADE, TOP, Daemon, until
from test_tomography_process import HUSHCAST, Service

import hushcast
from hushcast.keys import new_link
from hushcast_cli.configuration.broker_positions import admit_broker
from hushcast_cli.configuration.reload import tell_daemon

pytestmark = pytest.mark.processes

WHERE = "age in [30, 45]"
TERMS = ("--where", WHERE, "--k", "4", "--condition", "source", "--otherwise", "wait")


class Node(Daemon):
    """A client's daemon."""

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "hushcast_node", str(self.file)]
            self.process = subprocess.Popen(command, stderr=log, stdout=log)

    @property
    def socket(self) -> Path:
        return self.state / "control.sock"

    def is_shown(self) -> bool | None:
        """Return whether its one subscription is shown outside."""
        with hushcast.connect_sync(self.socket) as daemon:
            (held,) = daemon.subscriptions()
            outside: bool | None = held.described["outside"]
            return outside


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    daemons: list[Daemon] = []

    def one(kind: type[Daemon], name: str, role: str, *network: str) -> Daemon:
        daemons.append(kind(tmp_path / name, role, "\n".join(network)))
        return daemons[-1]

    yield one
    for daemon in daemons:
        if daemon.process.poll() is None:
            daemon.kill()


def test_two_and_two_are_four_until_one_leaves(begin: Callable[..., Any]) -> None:
    root = begin(Daemon, "root", "root", MADE)
    until((root.state / "network.toml").exists)
    network = (root.state / "network.toml").read_text()
    service = begin(Service, "service", "tomography", "settle = 0", network)
    until((service.state / "tomography.toml").exists)
    given = (service.state / "tomography.toml").read_text()
    root.kill()
    root.file.write_text(TOP.format(role="root", state=root.state) + MADE + given)
    root.start()
    edges = [begin(Daemon, name, "edge", network, given) for name in ("left", "right")]
    for edge in edges:
        admit_broker(root.file, edge.given(), None)
    until(lambda: tell_daemon(root.state) is True)  # it may be as slow to start again as the edges
    for edge in edges:
        until(edge.is_connected(1))
    nodes = [
        begin(Node, f"node-{n}", "client", network, f'[brokers]\nedge = "{edges[n // 2].given().key}"')
        for n in range(4)
    ]
    topic = new_link("clinic", ["age:0..120"])
    for one in nodes:
        until(one.socket.exists)
    until_shown = ("--count", "0", "--timeout", "60")
    listening = [
        subprocess.Popen([*HUSHCAST, "subscribe", "--socket", str(one.socket), topic, *TERMS, *until_shown])
        for one in nodes
    ]
    assert [process.wait(timeout=90) for process in listening] == [0] * 4
    assert [one.is_shown() for one in nodes] == [True] * 4
    with hushcast.connect_sync(nodes[3].socket) as daemon:
        daemon.unsubscribe(topic, where=WHERE)
    until(lambda: not any(one.is_shown() for one in nodes[:3]))
    for daemon in (service, root, *edges, *nodes):
        assert "Traceback" not in daemon.log
        assert "clinic" not in daemon.log
