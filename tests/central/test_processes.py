"""A server and two proxies as processes: admitted one by one, killed and restarted, one taken out again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hushcast_cli.configuration.proxy_admission import admit_proxy, read_proxy
from hushcast_cli.configuration.reload import tell_daemon

pytestmark = pytest.mark.processes

WITHIN = 60.0  # seconds; measured below three, and other work may share the machine
SERVER = 'program = "central-server"\nstate = "{state}"\ntransport = "tcp"\n'
SERVER += '[network]\ncarrier = "central"\nname = "mine"\n'
PROXY = 'program = "central-proxy"\nrole = "{role}"\nstate = "{state}"\ntransport = "tcp"\n'


class Daemon:
    """One process, with its configuration, state and log."""

    def __init__(self, directory: Path, kind: str, text: str) -> None:
        self.kind = kind
        self.file = directory / "config.toml"
        self.state = directory / "state"
        self._log = directory / "log"
        directory.mkdir()
        self.file.write_text(text)

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "hushcast_central", self.kind, str(self.file)]
            self.process = subprocess.Popen(command, stderr=log, stdout=log)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.wait(timeout=WITHIN)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def has_logged(self, event: str, times: int) -> Callable[[], bool]:
        return lambda: self.log.count(event) >= times


class Network:
    """A server and a proxy of each role, as three operators run them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.server = Daemon(directory / "server", "server", SERVER.format(state=directory / "server/state"))
        self.proxies: list[Daemon] = []
        self.server.start()
        self.network = self.server.state / "network.toml"
        until(self.network.exists)

    def add(self, role: str) -> Daemon:
        directory = self._directory / role
        text = PROXY.format(role=role, state=directory / "state") + self.network.read_text()
        proxy = Daemon(directory, "proxy", text)
        self.proxies.append(proxy)
        proxy.start()
        until(proxy.has_logged("waiting for the server to list this proxy", 1))
        return proxy

    def stop(self) -> None:
        for daemon in (self.server, *self.proxies):
            if daemon.process.poll() is None:
                daemon.kill()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    network = Network(tmp_path)
    yield network
    network.stop()


def test_a_network_is_made_survives_kills_and_lets_a_proxy_go(network: Network) -> None:
    server = network.server
    proxies = [network.add(role) for role in ("publications", "deliveries")]
    for proxy in proxies:
        _, is_new = admit_proxy(server.file, read_proxy(proxy.state / "proxy.toml"))
        assert is_new
        assert tell_daemon(server.state) is True
    for proxy in proxies:
        until(proxy.has_logged("connected to the server", 1))
    assert network.network.read_text().count("[[network.proxies]]") == 2

    given_out = network.network.read_text()
    server.kill()
    server.start()
    for proxy in proxies:
        until(proxy.has_logged("connected to the server", 2))
    assert network.network.read_text() == given_out, "it is where it was"
    for proxy in proxies:
        kept = (proxy.state / "proxy.toml").read_text()
        proxy.kill()
        proxy.start()
        until(proxy.has_logged("connected to the server", 3))
        assert (proxy.state / "proxy.toml").read_text() == kept

    server.file.write_text(SERVER.format(state=server.state))
    os.kill(server.process.pid, signal.SIGHUP)
    until(server.has_logged("the link of a proxy ended", 2))
    until(lambda: "[[network.proxies]]" not in network.network.read_text())
    for daemon in (server, *proxies):
        daemon.kill(signal.SIGTERM)
        assert daemon.process.returncode == 0
        assert "Traceback" not in daemon.log
        assert "127.0.0.1" not in daemon.log
