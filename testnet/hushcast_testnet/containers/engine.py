"""The engine: docker or podman, whichever works here, and its compose."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec
import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.extras import how_to_get
from hushcast_runtime.transports.base import TransportError

_SYSTEMD = Path("/run/systemd/system")
_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
_PODMANS_COMPOSE = "podman_compose"  # PyPI's: Debian 12's knows neither addresses nor subnets
_CONFIGURATION = Path(__file__).with_name("containers.conf")


class Engine(msgspec.Struct, frozen=True):
    """A program that runs containers; all its answers are plain text."""

    program: Literal["docker", "podman"]

    async def run(self, *arguments: str) -> str:
        """Run one of its commands and return what it prints; raise `TransportError` with its last words."""
        return await _run([self.program, *arguments])

    async def compose(self, file: Path, project: str, *arguments: str) -> str:
        """Run a compose command on a file; raise `TransportError`."""
        docker = self.program == "docker"
        program = ["docker", "compose"] if docker else [sys.executable, "-m", _PODMANS_COMPOSE]
        return await _run([*program, "-f", str(file), "-p", project, *arguments])

    async def try_run(self, *arguments: str) -> bool:
        """Run a command that may fail; return whether it did not."""
        try:
            await self.run(*arguments)
        except TransportError:
            return False
        return True


async def find_engine() -> Engine:
    """Return docker if its engine answers, else podman; raise `UsageError` that says what is missing."""
    docker = Engine("docker")
    if shutil.which("docker") and await docker.try_run("info") and await docker.try_run("compose", "version"):
        return docker
    if not shutil.which("podman"):
        raise UsageError("no docker engine answers and podman is not installed: run tools/require-podman")
    if importlib.util.find_spec(_PODMANS_COMPOSE) is None:
        raise UsageError(f"this needs podman-compose: {how_to_get('containers')}")
    if os.geteuid() != 0:
        raise UsageError("podman runs a testnet as root only; as another user, use docker")
    return Engine("podman")


async def _run(command: list[str]) -> str:
    done = await trio.run_process(
        command,
        stdin=subprocess.DEVNULL,
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        env=os.environ | _settings(),
    )
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        last = words[-1] if words else f"status {done.returncode}"
        raise TransportError(f"{' '.join(command[:3])}: {last}")
    return bytes(done.stdout).decode(errors="replace")


def _settings() -> dict[str, str]:
    settings = {}
    if not _UNIFIED.exists():  # podman's own choices do not start a container there
        settings["CONTAINERS_CONF"] = str(_CONFIGURATION)
    if not _SYSTEMD.exists():  # podman starts no container whose health it cannot have looked at by timers
        settings["DISABLE_HC_SYSTEMD"] = "true"
    return settings
