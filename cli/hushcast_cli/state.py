"""Which daemon a configuration is of, and what its state directory holds: for commands that work on that."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hushcast_runtime.config import DaemonSettings
    from hushcast_runtime.state_directory import StateKind

config_option: Callable[[Any], Any] = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="F",
    required=True,
    help="The daemon's configuration, TOML.",
)


def load_daemon(file: Path) -> tuple[DaemonSettings, StateKind]:
    """Read the configuration of a node or a directory; raise `UsageError` if it cannot be used."""
    from hushcast_directory import upgrade as directory_upgrade
    from hushcast_directory.run import KEY_FILES as DIRECTORY_KEYS
    from hushcast_directory.settings import DirectorySettings
    from hushcast_node import upgrade
    from hushcast_node.settings import NodeSettings
    from hushcast_overlay.identity import KEY_FILES
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.config import load_settings
    from hushcast_runtime.state_directory import StateKind

    if is_for_gateway(file):
        raise UsageError(f"{file} is a gateway's: this command is for nodes and directories")
    if is_for_directory(file):
        directory = load_settings(file, DirectorySettings)
        kind = StateKind("directory", directory.network.network(), DIRECTORY_KEYS, directory_upgrade.VERSION)
        return directory, kind
    node = load_settings(file, NodeSettings)
    keys = KEY_FILES if node.role == "relay" else ()
    return node, StateKind(node.role, node.network.network(), keys, upgrade.VERSION)


def is_for_directory(file: Path) -> bool:
    """Tell for which daemon a file is; where that cannot be told, `load_settings` will say why."""
    keys = _keys(file)
    network = keys.get("network")
    joins = isinstance(network, dict) and ("directory" in network or "directory_key" in network)
    return bool(keys) and "role" not in keys and not joins


def is_for_gateway(file: Path) -> bool:
    """Tell whether a file is a gateway's: it names who connects, or where, and no network."""
    keys = _keys(file)
    return "network" not in keys and "role" not in keys and not keys.keys().isdisjoint(_OF_GATEWAY)


_OF_GATEWAY = {"listen", "users", "anonymous"}


def _keys(file: Path) -> dict[str, Any]:
    from hushcast_runtime.config import MAX_CONFIG

    try:
        with file.open("rb") as opened:
            return tomllib.loads(opened.read(MAX_CONFIG).decode())
    except (OSError, ValueError, RecursionError):
        return {}
