"""The configuration that a daemon starts with, explained line by line: as few settings as can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hushcast_cli.configuration.places import ProgramPlaces
from hushcast_runtime.processes.network_file import toml_text
from hushcast_runtime.processes.program import role_called
from hushcast_runtime.transports.endpoints import Endpoint

_SYSTEM_TOR = """
[tor]
# The tor of this machine, which Debian starts.
mode = "system"
control = "unix:/run/tor/control"
socks = "127.0.0.1:9050"
"""
_OWN_TOR = """
[tor]
# A tor of the daemon's own, under its state directory. The program `tor` must be installed.
mode = "own"
"""
_JOIN = """
# What follows is the network, which `hushcast join network.toml` writes here.
"""


@dataclass(frozen=True)
class NetworkFoundation:
    """What a directory, a central server or a root decides for its network, and can never change."""

    name: str
    epoch_seconds: int
    more: str = ""
    """Further lines."""


@dataclass(frozen=True)
class MachineFacts:
    """What a first configuration takes over from the machine."""

    uid: int = 0
    """The user who makes it."""
    daemon: Path = Path("/run/hushcast/control.sock")
    """The control socket of the daemon beside."""


_NOBODY = MachineFacts()


def first_config(
    name: str,
    places: ProgramPlaces,
    tor: Path | Endpoint | None,
    network: NetworkFoundation | None,
    machine: MachineFacts = _NOBODY,
) -> str:
    """Return the file of the role with this name.

    `tor` is the directory of sockets of a tor beside, or a SOCKS port, `network` that of who makes one.
    """
    program, role = role_called(name)
    words = {
        "socket": toml_text(str(places.socket or places.state / str(program.socket))),
        "uid": str(machine.uid),
        "daemon": toml_text(str(machine.daemon)),
        "lines": toml_text(str(places.state / "lines")),
        "feed": toml_text(str(places.config.with_name("feed.link"))),
    }
    first = next(one for one in program.roles if one.init == role.init)
    made = role.init if role is first else f"{role.init} --role {role.word}"
    text = (
        f"# {role.title}\n"
        f"# Made by `hushcast init {made}`. All settings: docs/configuration.md. After a change:\n"
        f"#   hushcast admin check-config {places.config}\n\n"
    )
    text += f'program = "{program.name}"\n{_filled(role.head, words)}'
    if role.word is not None:
        text += f'role = "{role.word}"\n'
    text += f"# {role.state_help}\nstate = {toml_text(str(places.state))}\n"
    if places.socket is not None and program.socket_help:
        text += f"# {program.socket_help}\nsocket = {toml_text(str(places.socket))}\n"
    if places.unit is not None and program.group_help:
        text += f'# {program.group_help}\nsocket_group = "{program.service_home}"\n'
    text += _filled(role.more_keys, words)
    if program.key_files is not None:
        text += _tor(places, tor)
    text += _filled(role.sections, words)
    applied = "`systemctl reload`" if program.key_files is not None else "a reload"
    text += f'\n[log]\n# debug, info, warning or error; {applied} applies it.\nlevel = "info"\n'
    text += _filled(role.ending, words)
    if program.key_files is None:
        return text
    if network is None:
        return text + _JOIN
    text += "\n[network]\n"
    if role.founded != "overlay":
        text += f'carrier = "{role.founded}"\n'
    text += (
        "# Name and epoch keep networks apart: neither can be changed later.\n"
        f"name = {toml_text(network.name)}\n"
        f"epoch_seconds = {network.epoch_seconds}\n"
        f"{network.more}"
    )
    return text + role.admission


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", value)
    return text


def _tor(places: ProgramPlaces, tor: Path | Endpoint | None) -> str:
    if tor is None:
        return _SYSTEM_TOR if places.unit is not None else _OWN_TOR
    if isinstance(tor, Endpoint):
        return (
            "\n[tor]\n# A SOCKS port, and nothing else of its tor: relays see that circuits end together.\n"
            f'mode = "socks"\nsocks = {toml_text(str(tor))}\n'
        )
    return (
        "\n[tor]\n# A tor beside, reached by sockets alone: this daemon needs no network.\n"
        'mode = "system"\n'
        f"control = {toml_text(f'unix:{tor}/control')}\n"
        f"socks = {toml_text(f'unix:{tor}/socks')}\n"
        f"services = {toml_text(str(tor))}\n"
    )
