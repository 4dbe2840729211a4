"""Where a daemon's files lie: those of the services on a machine with the package, else those of a user."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.program import Program, role_called
from hushcast_runtime.user_folders import config_home, state_home, xdg_folder

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


def service_places(kind: str, name: str | None = None, etc: Path = _ETC) -> ProgramPlaces:
    """Return the places that the units of the package have; `name` is the instance of `hushcast-node@`.

    `kind` is what `hushcast init` calls the daemon, or `node`.
    """
    program, _ = role_called(kind)
    own = f"{program.service_unit}-{name}" if name else program.service_home
    return ProgramPlaces(
        etc / program.service_home / f"{name or program.config or program.name}.toml",
        Path("/var/lib", own),
        Path("/run", own, program.socket) if program.socket else None,
        f"{program.service_unit}@{name}" if name else program.service_unit,
    )


def unit_of(program: Program, config: Path) -> str | None:
    """Return the unit of the package that runs a configuration; `None` where none does."""
    if config.absolute().parent != _ETC / program.service_home:
        return None
    if config.stem == (program.config or program.name):
        return program.service_unit
    return f"{program.service_unit}@{config.stem}" if program.has_instances else None


def user_places(kind: str, name: str | None, environment: Mapping[str, str]) -> ProgramPlaces:
    """Return the places of a daemon that a user runs, as the XDG base directories have them."""
    configs = config_home(environment) / "hushcast"
    states = state_home(environment)
    runtime = xdg_folder("XDG_RUNTIME_DIR", environment)
    program, role = role_called(kind)
    stem = role.init if program.are_apart else program.name
    own = f"hushcast-{stem}" if program.are_apart else program.service_home
    if name:
        stem, own = name, f"{program.service_unit}-{name}"
    socket = Path(runtime, own, program.socket) if runtime and program.socket else None
    return ProgramPlaces(configs / f"{stem}.toml", states / own, socket, None)


def places(kind: str, name: str | None = None, etc: Path = _ETC) -> ProgramPlaces:
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


def config_of(kind: str, given: Path | None) -> Path:
    """Return the configuration to run: the one given, else where `hushcast init` writes it; `UsageError`."""
    return _config_of([kind], given)


def config_of_any(program: Program, given: Path | None) -> Path:
    """Return the configuration to run: as `config_of`, of whichever role of a program there is one."""
    return _config_of([role.init for role in program.roles], given)


def _config_of(kinds: Sequence[str], given: Path | None) -> Path:
    if given is not None:
        return given
    usual = {places(kind).config: kind for kind in reversed(kinds)}
    there = [config for config in usual if config.exists()]
    if len(there) > 1:
        raise UsageError(f"there are {' and '.join(map(str, sorted(there)))}: say which with --config")
    if there:
        return there[0]
    made = role_called(kinds[0])[1].init
    raise UsageError(
        f"no configuration at {places(kinds[0]).config}: `hushcast init {made}` makes one, or name it with"
        " --config"
    )
