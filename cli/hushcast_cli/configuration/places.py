"""Where a daemon's files lie: those of the services on a machine with the package, else those of a user."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from hushcast_protocol.base.errors import UsageError

Kind = Literal[
    "node",
    "directory",
    "gateway",
    "central-server",
    "publications-proxy",
    "deliveries-proxy",
    "broker-root",
    "broker",
    "tomography",
    "located-provider",
]

PROXIES: tuple[Kind, Kind] = ("publications-proxy", "deliveries-proxy")
"""A proxy is of one role; a machine runs one of them as a service."""
BROKERS: tuple[Kind, Kind] = ("broker-root", "broker")
"""A broker is the root or another; a machine runs one of them as a service."""

_ETC = Path("/etc")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}\Z")  # of an instance: in paths, and in the name of a unit


@dataclass(frozen=True)
class ProgramPlaces:
    """Where a daemon has its configuration, state and control socket, a gateway its MQTT socket."""

    config: Path
    state: Path
    socket: Path | None
    """`None`: in the state directory."""
    unit: str | None
    """The systemd unit that runs it; `None` where a user does."""


def service_places(kind: Kind, name: str | None = None, etc: Path = _ETC) -> ProgramPlaces:
    """Return the places that the units of the package have; `name` is the instance of `hushcast-node@`."""
    if kind in ("directory", "central-server", *PROXIES, *BROKERS, "tomography"):
        what = "central-proxy" if kind in PROXIES else "broker" if kind in BROKERS else kind
        home = f"hushcast-{what}"
        return ProgramPlaces(etc / home / f"{what}.toml", Path("/var/lib", home), None, home)
    if kind == "located-provider":
        home = "hushcast-located"
        return ProgramPlaces(etc / home / "provider.toml", Path("/var/lib", home), None, home)
    if kind == "gateway":
        home = "hushcast-gateway"
        return ProgramPlaces(
            etc / home / "gateway.toml", Path("/var/lib", home), Path("/run", home, "mqtt.sock"), home
        )
    own = f"hushcast-node-{name}" if name else "hushcast"
    unit = f"hushcast-node@{name}" if name else "hushcast-node"
    config = etc / "hushcast" / f"{name or 'node'}.toml"
    return ProgramPlaces(config, Path("/var/lib", own), Path("/run", own, "control.sock"), unit)


def user_places(kind: Kind, name: str | None, environment: Mapping[str, str]) -> ProgramPlaces:
    """Return the places of a daemon that a user runs, as the XDG base directories have them."""
    home = Path(environment.get("HOME") or "/")
    configs = Path(environment.get("XDG_CONFIG_HOME") or home / ".config", "hushcast")
    states = Path(environment.get("XDG_STATE_HOME") or home / ".local" / "state")
    runtime = environment.get("XDG_RUNTIME_DIR")
    if kind in ("directory", "central-server", *PROXIES, *BROKERS, "tomography"):
        return ProgramPlaces(configs / f"{kind}.toml", states / f"hushcast-{kind}", None, None)
    if kind == "located-provider":
        return ProgramPlaces(configs / "located-provider.toml", states / "hushcast-located", None, None)
    if kind == "gateway":
        socket = Path(runtime, "hushcast-gateway", "mqtt.sock") if runtime else None
        return ProgramPlaces(configs / "gateway.toml", states / "hushcast-gateway", socket, None)
    own = f"hushcast-node-{name}" if name else "hushcast"
    socket = Path(runtime, own, "control.sock") if runtime else None
    return ProgramPlaces(configs / f"{name or 'node'}.toml", states / own, socket, None)


def places(kind: Kind, name: str | None = None, etc: Path = _ETC) -> ProgramPlaces:
    """Return where a daemon's files lie here: root uses the services' places where the package made them."""
    service = service_places(kind, name, etc)
    if os.geteuid() == 0 and service.config.parent.is_dir():
        return service
    return user_places(kind, name, os.environ)


def check_name(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Raise `click.BadParameter` for a name that no instance can have."""
    if name is not None and (not _NAME.match(name) or name == "node"):
        problem = f"{name!r} cannot be used: 1 to 32 letters a-z, digits and hyphens, and not `node`"
        raise click.BadParameter(problem, context, parameter)
    return name


name_option = click.option(
    "--name",
    metavar="N",
    callback=check_name,
    help="Of one of several nodes on this machine; its unit is hushcast-node@N.",
)


def config_of(kind: Kind, given: Path | None) -> Path:
    """Return the configuration to run: the one given, else where `hushcast init` writes it; `UsageError`."""
    if given is not None:
        return given
    usual = places(kind).config
    if not usual.exists():
        made = f"hushcast init {'relay' if kind == 'node' else kind}"
        raise UsageError(f"no configuration at {usual}: `{made}` makes one, or name it with --config")
    return usual


def config_of_any(kinds: tuple[Kind, Kind], given: Path | None) -> Path:
    """Return the configuration to run: as `config_of`, of whichever of these kinds there is one."""
    if given is not None:
        return given
    there = {places(kind).config for kind in kinds if places(kind).config.exists()}
    if len(there) > 1:
        raise UsageError(f"there are {' and '.join(map(str, sorted(there)))}: say which with --config")
    return next(iter(there), None) or config_of(kinds[0], None)
