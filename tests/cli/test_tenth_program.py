"""A program that there was not: one `program.py`, a line in the list of programs, a unit, and all know it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hushcast_cli.configuration.places import service_places
from hushcast_runtime.processes import program
from hushcast_testnet.inventory import Member, run_by

pytestmark = pytest.mark.processes

WITHIN = 60.0  # seconds; measured below five, and other work may share the machine
PROGRAM = '''
"""A program that keeps a key, and does nothing."""

from __future__ import annotations

from typing import ClassVar

import trio

from hushcast_runtime.processes.config import NetworkSection
from hushcast_runtime.counters import Counters
from hushcast_runtime.processes.doctors_socket import ExaminedSettings, tell_findings
from hushcast_runtime.files import load_seed
from hushcast_runtime.storage.state_layout import migrate
from hushcast_runtime.logs import log
from hushcast_runtime.processes.process_frame import ProcessFrame, run_process
from hushcast_runtime.processes.program import DottedPath, Program, ProgramRole
from hushcast_runtime.processes.readiness import Health


KEYS = ("tenth.key",)


class TenthSettings(ExaminedSettings, frozen=True, kw_only=True):
    program_name: ClassVar[str] = "tenth"
    network: NetworkSection


class Tenth(ProcessFrame[TenthSettings]):
    def __init__(self, settings):
        super().__init__(settings, TENTH, settings.environment(), Counters(()))

    async def _open_sockets(self, nursery):
        await nursery.start(tell_findings, self._settings.doctors_socket(), self._examine)

    async def _examine(self):
        await trio.lowlevel.checkpoint()
        from hushcast_protocol.base.findings import good

        return [good("tenth", "does nothing")]

    async def _work(self, store, nursery):
        async with trio.open_nursery() as living:
            living.start_soon(store.run)
            await migrate(store, TENTH.migrations.load())
            load_seed(self._settings.state_path() / "tenth.key", self._env.randomness)
            log.info("running")

    def health(self):
        return Health(True, "working")

    def _readings(self):
        return {}


def run_tenth(load):
    run_process(load, Tenth)


TENTH = Program(
    name="tenth",
    module=("hushcast_tenth",),
    roles=(ProgramRole("tenth", "A tenth.", founded="overlay", restore_note="It is as it was then."),),
    settings=DottedPath("hushcast_tenth.program.TenthSettings"),
    run=DottedPath("hushcast_tenth.program.run_tenth"),
    key_files=DottedPath("hushcast_tenth.program.KEYS"),
    rotate="a tenth has one key for ever",
)
PROGRAMS = (TENTH,)
'''
UNIT = """
[Service]
ExecStart=/usr/bin/hushcast run tenth --config /etc/hushcast-tenth/tenth.toml
StateDirectory=hushcast-tenth
"""
LAUNCHER = """
from hushcast_runtime.processes.program import MODULES
MODULES.append("hushcast_tenth")
from hushcast_cli.main import main
main()
"""


class Machine:
    """A machine on which the tenth program is installed."""

    def __init__(self, folder: Path) -> None:
        package = folder / "lib" / "hushcast_tenth"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "program.py").write_text(PROGRAM)
        self.unit = folder / "hushcast-tenth.service"
        self.unit.write_text(UNIT)
        ours = {"PYTHONPATH": str(package.parent), "HOME": str(folder), "XDG_STATE_HOME": str(folder / "s")}
        self._env = {k: v for k, v in os.environ.items() if not k.startswith(("HUSHCAST", "XDG"))} | ours

    def hushcast(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", LAUNCHER, *map(str, arguments)]
        done = subprocess.run(
            command, env=self._env, capture_output=True, text=True, timeout=WITHIN, check=False
        )
        assert done.returncode == code, done.stderr
        return done

    def objects(self, *arguments: object, code: int = 0) -> list[Any]:
        return [
            json.loads(line) for line in self.hushcast(*arguments, "--json", code=code).stdout.splitlines()
        ]

    def start(self, config: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", LAUNCHER, "run", "--config", str(config)]
        return subprocess.Popen(command, env=self._env, stderr=subprocess.DEVNULL)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: a tor of its own would have sockets in the state."""
    with tempfile.TemporaryDirectory(prefix="hushcast-") as name:
        yield Path(name)


@pytest.fixture
def machine(folder: Path) -> Machine:
    return Machine(folder)


def until(is_there: Path) -> None:
    end = time.monotonic() + WITHIN
    while not is_there.exists():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_all_commands_know_it(machine: Machine, folder: Path) -> None:
    config, backup = folder / "tenth.toml", folder / "backup"
    (made,) = machine.objects("init", "tenth", "--network", "n", "--output", config)
    assert (made["kind"], made["next"]) == ("tenth", [f"hushcast run --config {config}"])
    config.write_text(
        config.read_text().replace('program = "tenth"\n', 'program = "tenth"\ntransport = "tcp"\n')
    )
    assert machine.objects("admin", "check-config", config) == [{"file": str(config), "kind": "tenth"}]
    state = folder / "s" / "hushcast-tenth"
    running = machine.start(config)
    try:
        until(state / "tenth.key")
        found = {
            one["check"]: one["verdict"] for one in machine.objects("doctor", "tenth", "--config", config)
        }
        assert found == dict.fromkeys(("configuration", "state", "daemon", "tenth"), "good")
        (told,) = machine.objects("admin", "backup", backup, "--config", config)
        assert (told["role"], told["version"]) == ("tenth", 1)
    finally:
        running.terminate()
        assert running.wait(WITHIN) == 0
    asked = machine.objects("doctor", "--config", config, code=1)
    assert [one["check"] for one in asked if one["verdict"] == "bad"] == ["daemon"]
    key = (state / "tenth.key").read_bytes()
    (state / "tenth.key").unlink()
    assert (
        "It is as it was then."
        in machine.hushcast("admin", "restore", backup, "--config", config, "--force").stdout
    )
    assert (state / "tenth.key").read_bytes() == key
    assert (
        "a tenth has one key" in machine.hushcast("admin", "key", "rotate", "--config", config, code=2).stderr
    )
    config.write_text(config.read_text().replace('program = "tenth"\n', ""))
    assert machine.hushcast("admin", "check-config", config).stderr.count("upgrade-config") == 1, (
        "it is told to name it"
    )


def test_places_and_testnets_know_it(machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder / "lib"))
    monkeypatch.setattr(program, "MODULES", [*program.MODULES, "hushcast_tenth"])
    found = service_places("tenth")
    assert f"{found.unit}.service" == machine.unit.name
    assert f"--config {found.config}\n" in machine.unit.read_text()
    assert f"StateDirectory={found.state.name}\n" in machine.unit.read_text()
    member = Member("tenth-1", "tenth", str(folder / "c"), str(folder / "s"), None)
    assert run_by(member.role) == ("hushcast_tenth",)
