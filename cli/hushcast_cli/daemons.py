"""`hushcast node run`, `hushcast directory run`, `hushcast check-config`: what takes a configuration."""

from __future__ import annotations

import tomllib
from pathlib import Path

import click

from hushcast_cli.options import Choices, json_option, pass_choices

_file = click.Path(path_type=Path)
_config_option = click.option(
    "--config", type=_file, metavar="F", required=True, help="The configuration, TOML."
)


@click.group()
def node() -> None:
    """Run a node: a relay or a client."""


@node.command("run")
@_config_option
def run_node_command(config: Path) -> None:
    """Run a relay or a client in the foreground until SIGTERM or Ctrl-C.

    A configuration that could reach anything outside Tor is refused, with exit code 2. Logs go to standard
    error and never show topics, payloads, keys or onion addresses.

    \b
    Example:
      hushcast node run --config relay.toml
    """
    from hushcast_node.run import run_node
    from hushcast_node.settings import NodeSettings
    from hushcast_runtime.config import load_settings

    run_node(lambda: load_settings(config, NodeSettings))


@click.group()
def directory() -> None:
    """Run a directory."""


@directory.command("run")
@_config_option
def run_directory_command(config: Path) -> None:
    """Run a network's directory in the foreground until SIGTERM or Ctrl-C.

    It writes `network.toml`, the section that the network's daemons need, into its state directory.

    \b
    Example:
      hushcast directory run --config directory.toml
    """
    from hushcast_directory.run import run_directory
    from hushcast_directory.settings import DirectorySettings
    from hushcast_runtime.config import load_settings

    run_directory(lambda: load_settings(config, DirectorySettings))


@click.command("check-config")
@click.argument("file", type=_file, metavar="F")
@json_option
@pass_choices
def check_config(choices: Choices, file: Path) -> None:
    """Check a configuration without starting anything.

    Says which key is wrong and why, with exit code 2; `node run` and `directory run` refuse to start with the
    same words.

    \b
    Example:
      hushcast check-config relay.toml
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_directory.settings import DirectorySettings
    from hushcast_node.settings import NodeSettings
    from hushcast_runtime.config import load_settings

    if _is_for_directory(file):
        load_settings(file, DirectorySettings)
        kind = "directory"
    else:
        kind = load_settings(file, NodeSettings).role
    if choices.json:
        write(json_line({"file": str(file), "kind": kind}))
    else:
        write(text_line(f"{file}: a good configuration of a {kind}"))


def _is_for_directory(file: Path) -> bool:
    """Tell for which daemon a file is; where that cannot be told, `load_settings` will say why."""
    from hushcast_runtime.config import MAX_CONFIG

    try:
        with file.open("rb") as opened:
            keys = tomllib.loads(opened.read(MAX_CONFIG).decode())
    except (OSError, ValueError, RecursionError):
        return False
    network = keys.get("network")
    joins = isinstance(network, dict) and ("directory" in network or "directory_key" in network)
    return "role" not in keys and not joins
