"""Which program a configuration is of, and what its state directory holds: for commands that work on that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hushcast_cli.options import config_option
from hushcast_runtime.processes.program import Program, programs
from hushcast_runtime.toml import keys_if_any

if TYPE_CHECKING:
    from hushcast_runtime.storage.state_directory import StateKind

daemon_config_option = config_option("The daemon's configuration, TOML.", required=True)


def load_daemon(file: Path) -> tuple[Program, Any, StateKind]:
    """Return the program, settings and state of a network's daemon; `UsageError` if they cannot be used."""
    from hushcast_protocol.base.errors import UsageError

    program = program_of(file)
    if program.key_files is None:
        daemons = "nodes, directories, central servers, proxies, brokers and tomography services"
        raise UsageError(f"{file} is a {program.noun}'s: this command is for {daemons}")
    settings = program.load(file)
    return program, settings, program.state(settings)


def noun_of(role: str) -> str:
    """Return what a person calls a daemon of this role."""
    return role.replace("-", " ")


def one_of(role: str) -> str:
    """Return what a person calls a daemon of this role, with its article."""
    return f"{'an' if role[0] in 'ei' else 'a'} {noun_of(role)}"


def program_of(file: Path) -> Program:
    """Tell which program a file configures; where that cannot be told, loading it will say why.

    Files of before there was the key `program` are told by their other keys, and a person is told so. Raises
    `UsageError` for a program that there is not.
    """
    from hushcast_cli.output import note
    from hushcast_protocol.base.errors import UsageError
    from hushcast_protocol.base.suggestions import did_you_mean

    keys = _keys(file)
    name = keys.get("program")
    if not isinstance(name, str):
        name = guessed(keys)
        if keys and "program" not in keys:
            line = f'program = "{name}"'
            note(f"{file} does not say which program it is of: `hushcast admin upgrade-config` adds {line}")
    known = {program.name: program for program in programs()}
    if name not in known:
        raise UsageError(f'{file}: program: there is no "{name}"{did_you_mean(name, known)}')
    return known[name]


def guessed(keys: dict[str, Any]) -> str:
    """Return the name of the program whose file has these keys, `program` not among them."""
    network = keys.get("network")
    network = network if isinstance(network, dict) else {}
    if "role" in keys:
        words = {role.word: program.name for program in programs() for role in program.roles}
        return words.get(str(keys["role"]), "node")
    if not keys or not network.keys().isdisjoint(_OF_JOINED):
        return "node"
    if "proxies" in keys or network.get("carrier") == "central":
        return "central-server"
    if "network" not in keys and not keys.keys().isdisjoint(_OF_PROVIDER):
        return "located-provider"
    is_gateway = "network" not in keys and not keys.keys().isdisjoint(_OF_GATEWAY)
    return "gateway" if is_gateway else "directory"


_OF_GATEWAY = {"listen", "users", "anonymous"}
_OF_PROVIDER = {"owner", "feed", "difficulty"}
_OF_JOINED = {"authorities", "directory", "directory_key", "quorum", "server", "server_key"}


def _keys(file: Path) -> dict[str, Any]:
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.files import read_most
    from hushcast_runtime.processes.config import MAX_LARGE_CONFIG

    try:
        return keys_if_any(read_most(file, MAX_LARGE_CONFIG))
    except UsageError:
        return {}
