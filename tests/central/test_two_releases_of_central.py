"""Real programs of two releases in a central network: it goes on to another wire, and who lags says so."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import next_release
import pytest

from hushcast_cli.configuration.proxy_admission import admit_proxy, read_proxy
from hushcast_cli.configuration.reload import tell_daemon

pytestmark = pytest.mark.processes

WITHIN = 60.0  # seconds; measured below ten in all, and other work may share the machine
DAYS = 2 * 24 * 3600 + 5 * 3600  # seconds by which all clocks are put on, behind the change of day
TOO_OLD = "this network speaks wire 2, and this program wire 1"
WAY_OUT = "install a release that speaks it; subscriptions and what has arrived are kept"
SERVER = 'program = "central-server"\nstate = "{state}"\ntransport = "tcp"\n{wire}'
SERVER += '[network]\ncarrier = "central"\nname = "mine"\n'
PROXY = 'program = "central-proxy"\nrole = "{role}"\nstate = "{state}"\ntransport = "tcp"\n'
CLIENT = (
    'program = "node"\nrole = "client"\nstate = "{state}"\nsocket = "{state}/socket"\ntransport = "tcp"\n'
)
AROUND = '\n[testnet]\nname = "{name}"\ntraces = "{place}"\nbegan = 0.0\nclock = "{place}/clock"\n'


class Program:
    """One program, of whichever release it is started as."""

    def __init__(self, place: Path, name: str, module: tuple[str, ...], text: str) -> None:
        self.module = module
        self.state = place / name
        self.file = place / f"{name}.toml"
        self._log = place / f"{name}.log"
        self._around = AROUND.format(name=name, place=place)
        self.write(text)

    def write(self, text: str) -> None:
        self.file.write_text(text.format(state=self.state) + self._around)

    def start(self, release: Path | None = None) -> None:
        path = {} if release is None else {"PYTHONPATH": next_release.path_of(release)}
        command = [sys.executable, "-m", *self.module, str(self.file)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, env=os.environ | path, stderr=log, stdout=log)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=WITHIN) == 0

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wire(self) -> dict[str, Any] | None:
        """Return what its doctor finds of wires."""
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(str(self.state / "doctor.sock"))
            lines = asked.makefile("rb").read().splitlines()
        return next((one for one in map(json.loads, lines) if one["check"] == "wire"), None)


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + WITHIN
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    made: list[Program] = []
    yield made
    for program in made:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


def hushcast(client: Program, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hushcast_cli.start", *words, "--socket", str(client.state / "socket")]
    return subprocess.run(command, text=True, capture_output=True, timeout=WITHIN, check=False)


def made_network(place: Path, programs: list[Program]) -> tuple[Program, list[Program], Program]:
    """Start a server, a proxy of each role and a client, all of this release."""
    server = Program(place, "server", ("hushcast_central", "server"), SERVER.replace("{wire}", ""))
    programs.append(server)
    server.start()
    network = server.state / "network.toml"
    until(network.exists)
    proxies = []
    for role in ("publications", "deliveries"):
        text = PROXY.replace("{role}", role) + network.read_text()
        proxy = Program(place, role, ("hushcast_central", "proxy"), text)
        programs.append(proxy)
        proxies.append(proxy)
        proxy.start()
        until((proxy.state / "proxy.toml").exists)
        admit_proxy(server.file, read_proxy(proxy.state / "proxy.toml"))
        assert tell_daemon(server.state) is True
        until(lambda proxy=proxy: "connected to the server" in proxy.log)
    until(lambda: network.read_text().count("[[network.proxies]]") == 2)
    client = Program(place, "client", ("hushcast_node",), CLIENT + network.read_text())
    programs.append(client)
    client.start()
    until(lambda: hushcast(client, "publish", "news", "before", "--timeout", "10").returncode == 0)
    return server, proxies, client


def test_a_server_announces_and_who_is_not_upgraded_says_so(
    tmp_path_factory: pytest.TempPathFactory, programs: list[Program]
) -> None:
    place = tmp_path_factory.mktemp("c")
    (place / "clock").write_text("0")
    release = next_release.make(place / "next")
    server, proxies, client = made_network(place, programs)
    lagging, upgraded = proxies
    for program in (server, upgraded):
        program.stop()
        program.start(release)
    until(lambda: upgraded.log.count("connected to the server") == 2)
    text = server.file.read_text()
    server.file.write_text(text.replace("[network]", "wire = 2\n[network]", 1))
    assert tell_daemon(server.state) is True
    until(lambda: (lagging.wire() or {}).get("verdict") == "warning")
    assert upgraded.wire() is None

    (place / "clock").write_text(str(DAYS))
    until(lambda: (lagging.wire() or {}).get("verdict") == "bad")
    assert lagging.wire() == {"check": "wire", "verdict": "bad", "found": TOO_OLD, "advice": WAY_OUT}
    until(lambda: TOO_OLD in hushcast(client, "publish", "news", "never", "--no-wait").stderr)
    refused = hushcast(client, "publish", "news", "never", "--no-wait")
    assert refused.returncode == 4, refused
    assert WAY_OUT in refused.stderr
    told = hushcast(client, "status").stdout
    assert "this network speaks wire 2, which this program does not" in told

    for program in (lagging, client):
        program.stop()
        program.start(release)
    until(lambda: hushcast(client, "publish", "news", "again", "--timeout", "10").returncode == 0)
    assert lagging.wire() is None
    assert all("Traceback" not in program.log for program in programs)
