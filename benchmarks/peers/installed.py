"""Installs the peers: a virtual environment of their own, and mosquitto where the system has or gives it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.figures import PeerMissing

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv-bench"
PACKAGES = {"amqtt": "amqtt", "libp2p": "libp2p", "rbloom": "rbloom"}  # by what is imported
PATIENCE = 600  # seconds for an installation
_SYSTEM = "/usr/sbin:/usr/local/sbin"  # where brokers live, and often not on the path


@functools.cache
def python_with(package: str) -> str:
    """Return a Python that can import a peer's package, installing it the first time."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    if subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode:  # noqa: S603
        print(f"installing {PACKAGES[package]} for comparison", file=sys.stderr)
        _run([str(python), "-m", "pip", "install", "--quiet", PACKAGES[package]])
    return str(python)


@functools.cache
def mosquitto() -> str:
    """Return the path of mosquitto, installed with apt where that is permitted."""
    path = f"{os.environ.get('PATH', '')}:{_SYSTEM}"
    if (found := shutil.which("mosquitto", path=path)) is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise PeerMissing("install the package mosquitto")
        print("installing mosquitto for comparison", file=sys.stderr)
        _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "mosquitto"])
        found = shutil.which("mosquitto", path=path)
    if found is None:
        raise PeerMissing("its package holds no broker")
    return found


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerMissing(error) from None
    if done.returncode:
        raise PeerMissing(f"not installed: {done.stderr.strip()}")
