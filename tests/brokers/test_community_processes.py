"""A community over real processes and sockets, as its people type it: made, joined, used, left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hushcast_cli.main import run

pytestmark = pytest.mark.processes

WITHIN = 60.0  # seconds; measured below five, and other work may share the machine
TOP = 'role = "{role}"\nstate = "{state}"\ntransport = "tcp"\n'
MADE = '[network]\ncarrier = "brokers"\nname = "mine"\nprivacy = "community"\n'
NOBODY = {name: value for name, value in os.environ.items() if not name.startswith("HUSHCAST_")}


def until(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + WITHIN
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


class Terminal:
    """Where people type commands: in this process, which has them loaded."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def said(self, *arguments: object) -> tuple[int, str, str]:
        """Type a command; return its exit code, and what it writes to both."""
        self._capfd.readouterr()
        code = run(list(map(str, arguments)))
        sys.stdout.flush()
        out, err = self._capfd.readouterr()
        return code, out.strip(), err

    def typed(self, *arguments: object) -> str:
        code, out, err = self.said(*arguments)
        assert code == 0, err
        return out

    def refused(self, *arguments: object) -> str:
        code, _, err = self.said(*arguments)
        assert code != 0
        return err

    def status(self, daemon: Daemon) -> dict[str, Any]:
        """What a daemon says of itself; nothing before it serves."""
        code, out, _ = self.said("status", "--json", "--socket", daemon.socket)
        told = json.loads(out) if code == 0 else {}
        return told | {key: told.get(key) or {} for key in ("edge", "community")}


class Daemon:
    """One process, with its configuration, state and log."""

    def __init__(self, directory: Path, role: str, network: str, module: str) -> None:
        self.file, self.state = directory / "config.toml", directory / "state"
        self._log = directory / "log"
        self._module = module
        self.process: Any = None
        directory.mkdir()
        self.state.mkdir(mode=0o700)
        self.file.write_text(TOP.format(role=role, state=self.state) + network)

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", self._module, str(self.file)]
            self.process = subprocess.Popen(command, stderr=log, stdout=log, env=NOBODY)

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(timeout=WITHIN)

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def socket(self) -> Path:
        return self.state / "control.sock"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str, str], Daemon]]:
    daemons: dict[str, Daemon] = {}

    def one(name: str, role: str) -> Daemon:
        network = MADE if role == "root" else (daemons["root"].state / "network.toml").read_text()
        module = "hushcast_node" if role == "client" else "hushcast_brokers"
        daemons[name] = Daemon(tmp_path / name, role, network, module)
        if role != "client":
            daemons[name].start()
            until((daemons[name].state / ("network.toml" if role == "root" else "broker.toml")).exists)
        return daemons[name]

    yield one
    for daemon in daemons.values():
        daemon.stop(signal.SIGKILL)


def test_a_community_is_made_joined_used_and_left(
    start: Callable[[str, str], Daemon], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(capfd)
    typed = terminal.typed
    root, edge = start("root", "root"), start("edge", "edge")
    typed("broker", "admit", edge.state / "broker.toml", "--config", root.file)
    until(lambda: "connected to the parent" in edge.log)
    club = tmp_path / "club"
    keeper = typed("community", "new", club, root.state / "network.toml")
    assert re.fullmatch("[0-9a-f]{64}", keeper)
    text = root.file.read_text()
    at = text.index("[network]")
    root.file.write_text(f'{text[:at]}communities = ["{keeper}"]\n{text[at:]}')
    os.kill(root.process.pid, signal.SIGHUP)

    author, reader = start("author", "client"), start("reader", "client")
    keys = [typed("community", "join", keeper, "--config", member.file) for member in (author, reader)]
    admitted = typed("community", "admit", club, "root", edge.state / "broker.toml", *keys, "--in", 0)
    assert admitted == "epoch 1, 4 members, begins at once"
    assert "epoch 1" in typed("community", "send", club, "--config", author.file)
    for member in (author, reader):
        member.start()
    until(lambda: terminal.status(reader)["community"].get("epoch") == 1)
    assert terminal.status(reader)["community"]["key"] == keys[1]
    command = [sys.executable, "-m", "hushcast_cli.start", "subscribe", "news", "--count", "1"]
    listening = subprocess.Popen(
        [*command, "--socket", str(reader.socket)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=NOBODY
    )
    until(lambda: terminal.status(reader)["edge"].get("routed"))
    typed("publish", "news", "it rains", "--socket", author.socket)
    assert listening.communicate(timeout=WITHIN)[0].strip() == b"it rains"

    typed("community", "expel", club, keys[1], "--in", 0)
    typed("community", "send", club, "--config", author.file)
    until(lambda: terminal.status(reader)["community"].get("epoch") is None)
    assert "community admit" in terminal.refused("subscribe", "weather", "--socket", reader.socket)
    shown = json.loads(typed("community", "show", club, "--json"))
    assert (shown["epoch"], len(shown["members"])) == (2, 3)
    for daemon in (author, reader, edge, root):
        daemon.stop()
        assert daemon.process.returncode == 0
        assert "Traceback" not in daemon.log
        assert keeper not in daemon.log
