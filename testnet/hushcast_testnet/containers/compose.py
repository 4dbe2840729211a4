"""The compose file of a container testnet: its containers, and which can reach which.

Directories of the testnet have the same path inside as outside, so that configurations, sockets and traces
are the same in every backend. A daemon has no network at all: its tor, in the next container, reaches it and
is reached by Unix sockets in a directory that these two share, or, in a breakable testnet, that a relay
mirrors from one to the other. Tors have one network, without a way out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from hushcast_testnet.containers.engine import Engine

_PYTHON = "/opt/hushcast/bin/python"
_NETWORK = "tor"


class Containers(msgspec.Struct, frozen=True):
    """The containers that `up` made."""

    engine: Engine
    project: str
    file: str
    addresses: dict[str, str]
    """Of the tors, and of the proxy between them, by their services."""

    @property
    def network(self) -> str:
        """The network that the tors share."""
        return f"{self.project}-tor"

    def name(self, service: str) -> str:
        """Return the name of a service's container."""
        return f"{self.project}-{service}"

    async def start(self, service: str) -> None:
        """Start a container that does not run."""
        await self.engine.run("start", self.name(service))

    async def there(self, *filters: str) -> list[str]:
        """Return the names of its containers, all or those that the engine's filters leave."""
        chosen = [word for each in (f"name={self.project}-", *filters) for word in ("--filter", each)]
        return (await self.engine.run("ps", "--all", *chosen, "--format", "{{.Names}}")).split()

    async def remove(self) -> None:
        """Stop and remove all containers and their network; what is gone already is no error.

        By the engine: podman's compose asks it for each container of the file in turn.
        """
        if names := await self.there():
            await self.engine.try_run("stop", "--time", "10", *names)
            await self.engine.run("rm", "--force", *names)
        await self.engine.try_run("network", "rm", self.network)


@dataclass(frozen=True)
class ComposeFrame:
    """What all containers of a testnet have in common."""

    containers: Containers
    image: str
    user: str
    """Numeric user and group that files belong to, as in `1000:1000`."""


@dataclass(frozen=True)
class TorContainer:
    """A tor: its torrc, and the directories that it sees, with the paths at which it does."""

    name: str
    torrc: Path
    directories: dict[Path, Path]


@dataclass(frozen=True)
class DaemonContainer:
    """A daemon, or the proxy between tors: what runs it, its configuration, the directories that it sees."""

    name: str
    run_by: tuple[str, ...]
    """A module, and the words before the configuration."""
    config: Path
    directories: dict[Path, Path]


def compose(
    frame: ComposeFrame, subnet: str, tors: Iterable[TorContainer], daemons: Iterable[DaemonContainer]
) -> str:
    """Return the compose file of these containers; `subnet` is the tors' network, as in `10.1.2.0/24`."""
    services: dict[str, Any] = {}
    for tor in tors:
        defaults = str(tor.torrc.with_name("no-defaults"))
        command = ["tor", "--defaults-torrc", defaults, "--ignore-missing-torrc"]
        command += ["-f", str(tor.torrc), "--RunAsDaemon", "0"]
        services[tor.name] = _service(frame, tor.name, command, tor.directories)
    for daemon in daemons:
        run = [_PYTHON, "-m", *daemon.run_by, str(daemon.config)]
        # Compose replaces $ by variables unless it is doubled.
        command = ["/bin/sh", "-c", 'exec "$$@" >>"$$0" 2>&1', str(daemon.config.with_name("log")), *run]
        services[daemon.name] = _service(frame, daemon.name, command, daemon.directories)
        if daemon.name not in frame.containers.addresses:  # the proxy is none that could be asked
            services[daemon.name]["healthcheck"] = _healthcheck(daemon.config)
    ways = {"name": frame.containers.network, "internal": True, "ipam": {"config": [{"subnet": subnet}]}}
    return json.dumps({"services": services, "networks": {_NETWORK: ways}}, indent=2)  # JSON is YAML, too


def _healthcheck(config: Path) -> dict[str, Any]:
    asked = [_PYTHON, "-m", "hushcast_cli.start", "healthcheck", "--config", str(config)]
    return {"test": ["CMD", *asked], "interval": "60s", "timeout": "30s", "start_period": "10m"}


def _service(
    frame: ComposeFrame, name: str, command: list[str], directories: dict[Path, Path]
) -> dict[str, Any]:
    address = frame.containers.addresses.get(name)
    network = {"networks": {_NETWORK: {"ipv4_address": address}}} if address else {"network_mode": "none"}
    return {
        "image": frame.image,
        "container_name": frame.containers.name(name),
        "command": command,
        "user": frame.user,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108 - the container's own
        "volumes": [f"{outside}:{inside}" for outside, inside in directories.items()],
        **network,
    }
