"""The tomography service as a process: it gives itself out, an edge broker states, and a person asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio
from test_broker_processes import MADE, Daemon, until

from hushcast_cli.configuration.broker_positions import admit_broker
from hushcast_cli.configuration.reload import tell_daemon
from hushcast_cli.operate.tomography_question import TomographyOptions, ask_for, asker_settings
from hushcast_protocol.base.errors import HushcastError, Refusal, UsageError
from hushcast_protocol.brokers.tomography.questions import TomographyAnswer
from hushcast_protocol.content.topics import parse_topic
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.transports.base import TransportError

pytestmark = pytest.mark.processes


class Service(Daemon):
    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [*HUSHCAST, "run", "tomography", "--config", str(self.file)]
            self.process = subprocess.Popen(command, stderr=log, stdout=log)


HUSHCAST = (sys.executable, "-m", "hushcast_cli.start")


@pytest.fixture
def running() -> Iterator[Callable[[Daemon], Daemon]]:
    daemons: list[Daemon] = []

    def keep(daemon: Daemon) -> Daemon:
        daemons.append(daemon)
        return daemon

    yield keep
    for daemon in daemons:
        if daemon.process.poll() is None:
            daemon.kill()


def ask(config: Path, service: Path | None, origin: str, k: int = 5) -> TomographyAnswer:
    """Ask as the command does, about the way to the root."""
    wanted = TomographyOptions(origin, k, 1)
    with ungrouped(HushcastError):
        told, _ = trio.run(ask_for, asker_settings(config, service), parse_topic("news"), "", wanted)
    return told


def is_told(config: Path, origin: str) -> bool:
    try:
        return not ask(config, None, origin).is_anonymous
    except (UsageError, TransportError):  # it is not there yet, or holds an older tree
        return False


def test_a_service_is_started_stated_to_and_asked(
    tmp_path: Path, running: Callable[[Daemon], Daemon]
) -> None:
    root = running(Daemon(tmp_path / "root", "root", MADE))
    until((root.state / "network.toml").exists)
    network = (root.state / "network.toml").read_text()
    service = running(Service(tmp_path / "service", "tomography", network))
    given = service.state / "tomography.toml"
    until(given.exists)
    edge = running(Daemon(tmp_path / "edge", "edge", network + given.read_text()))
    admit_broker(root.file, edge.given(), None)
    assert tell_daemon(root.state) is True
    until(edge.is_connected(1))

    key = edge.given().key

    until(lambda: is_told(edge.file, key[:12]))
    with pytest.raises(Refusal, match="may not vouch"):
        ask(edge.file, None, key, k=100)
    with pytest.raises(Refusal, match="crowds alone"):
        ask(edge.file, None, key, k=4)
    for unknown in ("abcd", "0" * 64):
        with pytest.raises(UsageError, match="--from: write 8 digits"):
            ask(edge.file, None, unknown)
    with pytest.raises(UsageError, match="--service"):
        ask(service.file, None, key)
    assert not ask(service.file, given, key).is_anonymous

    command = [*HUSHCAST, "tomography", "ask", "news", "--from", key, "--k", "5", "--json"]
    done = subprocess.run([*command, "--config", edge.file], capture_output=True, timeout=60, check=True)
    answer = json.loads(done.stdout)
    assert (answer["anonymous"], answer["from"], answer["k"], done.stderr) == (False, key, 5, b"")

    kept = given.read_text()
    service.kill()
    with pytest.raises(TransportError):
        ask(edge.file, None, key)
    service.start()
    until(lambda: is_told(edge.file, key))
    assert given.read_text() == kept
    os.kill(service.process.pid, signal.SIGHUP)
    for daemon in (service, edge, root):
        daemon.kill(signal.SIGTERM)
        assert daemon.process.returncode == 0
        assert "Traceback" not in daemon.log
        assert "127.0.0.1" not in daemon.log
