"""Wheel and sdist can be installed where nothing of ours is, and work there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

pytestmark = pytest.mark.processes


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program that sees nothing of this repository."""
    ours = ("HUSHCAST_", "PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a fresh environment; return its directory of programs."""
    home = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    (wheel,) = dist.glob("*.whl")
    # What is used is compiled when it is.
    quick = ("--quiet", "--disable-pip-version-check", "--no-compile")
    run(sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", *quick, wheel, cwd=home)
    return home / "bin"


def test_the_wheel_knows_its_version(environment: Path, tmp_path: Path) -> None:
    assert run(environment / "hushcast", "--version", cwd=tmp_path) == f"hushcast {VERSION}\n"


def test_the_wheel_brings_the_shipped_purposes(environment: Path, tmp_path: Path) -> None:
    shown = run(environment / "hushcast", "lab", "purpose", "vocabulary", cwd=tmp_path)
    assert "  personalised-advertising\n" in shown


def test_a_network_of_the_wheel(environment: Path, tmp_path: Path) -> None:
    """All daemons run from the environment, and a message arrives."""
    program, net = environment / "hushcast", tmp_path / "net"
    size = ("--nodes", "3", "--clients", "2", "--transport", "tcp", "--epoch", "20")
    run(program, "testnet", "up", "--dir", net, *size, cwd=tmp_path)
    try:
        (status,) = [json.loads(run(program, "testnet", "status", "--dir", net, "--json", cwd=tmp_path))]
        assert status["ready"]
        for node in status["nodes"]:
            command = Path(f"/proc/{node['pid']}/cmdline").read_text().split("\0")[0]
            assert Path(command).parent == environment
        reader, writer = (net / "nodes" / name / "control.sock" for name in ("client-1", "client-2"))
        listen = [program, "--socket", reader, "subscribe", "news", "--count", "1", "--timeout", "60"]
        with subprocess.Popen([*listen, "--json"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as heard:
            assert heard.stdout is not None
            assert json.loads(heard.stdout.readline())["event"] == "subscribed"
            run(program, "--socket", writer, "publish", "news", "it rains", cwd=tmp_path)
            assert "it rains" in heard.stdout.read()
    finally:
        run(program, "testnet", "down", "--dir", net, cwd=tmp_path)


def test_the_sdist_holds_what_packages_are_made_of(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "Makefile",
        "LICENSE",
        "systemd/hushcast-node.service",
        "tools/build-deb",
        "examples/chat.py",
    } <= names
    assert not {name for name in names if re.match(r"(\.venv|dist|build|\.git)/", name)}
