"""`doctor`: what is not well is said with what to do, and in the exit code; also of what does not run."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from fake_daemon import FakeDaemon
from running import hushcast
from stopped_state import give_state
from test_daemons import NODE as RELAY
from test_daemons import ONION

from hushcast.control_messages import Finding
from hushcast_cli.configuration.places import service_places, unit_of
from hushcast_cli.operate.stopped_program import finding_of_stopped
from hushcast_node.program import NODE
from hushcast_runtime.processes.program import programs
from hushcast_runtime.storage.state_layout import DATABASE

WARNING = Finding("disk", "warning", "1.5 GiB free for the state", "make room")
BAD = Finding("clock", "bad", "behind Tor's consensus", "set it")


async def test_all_is_well(daemon: FakeDaemon) -> None:
    outcome = await hushcast("doctor", "--socket", daemon.socket)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.decode() == "✔ tor: version 0.4.8.10\n"


async def test_a_warning_is_for_information(daemon: FakeDaemon) -> None:
    daemon.findings.append(WARNING)
    outcome = await hushcast("doctor", "--socket", daemon.socket)
    assert outcome.code == 0
    assert "! disk: 1.5 GiB free for the state\n  → make room\n" in outcome.stdout.decode()


async def test_what_is_bad_is_in_the_exit_code(daemon: FakeDaemon) -> None:
    daemon.findings += [WARNING, BAD]
    outcome = await hushcast("doctor", "--json", "--socket", daemon.socket)
    assert outcome.code == 1
    assert outcome.error == "not well: clock"
    assert [found["verdict"] for found in outcome.objects] == ["good", "warning", "bad"]
    assert outcome.objects[2] == {
        "check": "clock",
        "verdict": "bad",
        "found": "behind Tor's consensus",
        "advice": "set it",
    }


# By a configuration


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Return the usual configuration of a client that does not run."""
    (tmp_path / "hushcast").mkdir(exist_ok=True)
    file = tmp_path / "hushcast" / "node.toml"
    text = RELAY.replace('"relay"', '"client"')
    file.write_text(text.format(state=tmp_path / "state", transport="tor", directory=ONION))
    return file


async def test_a_configuration_goes_before_the_environment(
    daemon: FakeDaemon, node: Path, home: dict[str, str]
) -> None:
    lives = home | {"HUSHCAST_SOCKET": str(daemon.socket)}
    assert (await hushcast("doctor", env=lives)).code == 0
    for words in (["--config", node], ["node"]):
        outcome = await hushcast("doctor", *words, env=lives)
        assert (outcome.code, outcome.error) == (1, "not well: daemon")


async def test_without_a_daemon_the_usual_configuration_is_looked_at(
    tmp_path: Path, node: Path, home: dict[str, str]
) -> None:
    outcome = await hushcast("doctor", env=home)
    assert outcome.code == 1
    assert outcome.stdout.decode().splitlines() == [
        f"✔ configuration: {node}, a client's",
        f"✔ state: {tmp_path}/state is made at the first start",
        "✘ daemon: does not run",
        "  → start it, as `service` says",
        f"! service: no unit of this machine runs {node}",
        f"  → hushcast run --config {node}",
    ]
    named = await hushcast("doctor", "--socket", tmp_path / "none", env=home)
    assert (named.code, named.stdout) == (3, b"")
    node.unlink()
    nothing = await hushcast("doctor", env=home)
    assert (nothing.code, "start one with `hushcast run`" in nothing.error) == (3, True)


async def test_a_state_says_when_it_was_written_and_who_may_use_it(
    tmp_path: Path, node: Path, home: dict[str, str]
) -> None:
    state = tmp_path / "state"
    give_state(state, 1)
    with closing(sqlite3.connect(state / DATABASE)) as database:
        database.execute("PRAGMA journal_mode=WAL")  # as a daemon's: who looks leaves files, too
    hours_ago = time.time() - 3 * 3600
    for file in state.iterdir():
        os.utime(file, (hours_ago, hours_ago))
    for _ in range(2):
        told = (await hushcast("doctor", env=home)).stdout.decode()
        assert f"runs {node}; its state was last written 3 hours ago\n" in told
    state.chmod(0o755)
    told = (await hushcast("doctor", env=home)).stdout.decode()
    assert f"✘ state: {state} is open to other users\n  → chmod 700 {state}\n" in told


async def test_a_bad_configuration_is_a_finding(node: Path, home: dict[str, str]) -> None:
    node.write_text(node.read_text().replace("state", "stat"))
    outcome = await hushcast("doctor", "--json", env=home)
    assert (outcome.code, outcome.error) == (1, "not well: configuration")
    (found,) = outcome.objects
    assert "stat: " in found["found"]
    assert f"hushcast admin check-config {node}" in found["advice"]
    missing = await hushcast("doctor", "--config", node.with_name("none"), env=home)
    assert (missing.code, "none" in missing.error) == (2, True)


async def test_among_several_programs_the_node_is_meant_or_who_is_named(
    tmp_path: Path, node: Path, home: dict[str, str]
) -> None:
    directory = node.with_name("directory.toml")
    directory.write_text(f'program = "directory"\nstate = "{tmp_path}/d"\n[network]\nname = "mine"\n')
    assert f"configuration: {node}" in (await hushcast("doctor", env=home)).stdout.decode()
    named = (await hushcast("doctor", "directory", env=home)).stdout.decode()
    assert f"configuration: {directory}, a directory's" in named
    unclear = await hushcast("run", env=home)
    assert unclear.code == 2
    assert f"there are {directory} and {node}: say which with --config, or name the PROGRAM" in unclear.error


def test_each_unit_is_known_by_the_configuration_that_it_runs() -> None:
    for program in programs():
        for role in program.roles:
            for name in (None, "probe") if program.has_instances else (None,):
                there = service_places(role.init, name)
                assert unit_of(program, there.config) == there.unit
        assert unit_of(program, Path("/home/alice/.config/hushcast/node.toml")) is None


@pytest.mark.parametrize(
    ("shown", "found", "advice"),
    [
        (
            "LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=signal\nStatusText=no tor",
            "hushcast-node is failed (failed, signal); it said last: no tor",
            "journalctl -u hushcast-node -n 30 says why; then systemctl restart hushcast-node",
        ),
        (
            "LoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\nStatusText=",
            "hushcast-node is inactive (dead)",
            "systemctl enable --now hushcast-node",
        ),
        (
            "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nStatusText=",
            "hushcast-node is activating (auto-restart, exit-code)",
            "journalctl -u hushcast-node -n 30 says why",
        ),
        (
            "LoadState=not-found\nActiveState=inactive",
            "no unit of this machine runs f",
            "hushcast run --config f",
        ),
    ],
)
def test_a_unit_that_does_not_run_says_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, found: str, advice: str
) -> None:
    """With a service manager that says what systemd's says."""
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(f"#!/bin/sh\ncat <<'END'\n{shown}\nEND\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    told = finding_of_stopped(NODE, Path("f"), tmp_path / "state", "hushcast-node")
    assert (told.check, told.found, told.advice) == ("service", found, advice)
