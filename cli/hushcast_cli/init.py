"""`hushcast init`: writes the configuration that a daemon starts with."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import click

from hushcast_cli.options import Choices, json_option, pass_choices
from hushcast_cli.places import Places, name_option, places
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH

DEFAULT_EPOCH = 3600  # seconds
_SHARED = 0o640  # a service reads its configuration through its group
_PRIVATE = 0o600


@click.command("init")
@click.argument("role", type=click.Choice(["relay", "client", "directory", "gateway"]), metavar="ROLE")
@name_option
@click.option("--network", metavar="N", help="A directory's network: any name; a random one unless given.")
@click.option(
    "--epoch",
    type=click.IntRange(MIN_EPOCH, MAX_EPOCH),
    metavar="S",
    help=f"A directory's epochs, in seconds; {DEFAULT_EPOCH} unless given.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="F",
    help="Write this file instead, or with `-` standard output.",
)
@click.option(
    "--tor-sockets",
    type=click.Path(path_type=Path),
    metavar="D",
    envvar="HUSHCAST_TOR_SOCKETS",
    help="Use a tor that has its sockets `control` and `socks` in this directory; also HUSHCAST_TOR_SOCKETS.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
@pass_choices
def init(
    choices: Choices,
    role: str,
    name: str | None,
    network: str | None,
    epoch: int | None,
    output: Path | None,
    tor_sockets: Path | None,
    force: bool,
) -> None:
    """Write the configuration of a ROLE: a relay, a client, a directory or an MQTT gateway.

    For root on a machine with the package it is that of the service, otherwise one for yourself. Nothing is
    started, and nothing that is there is replaced. A relay or client then needs a network: `hushcast join`.

    \b
    Examples:
      hushcast init directory --network example
      hushcast init relay
    """
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.errors import UsageError

    if role != "directory" and (network, epoch) != (None, None):
        raise UsageError("--network and --epoch are a directory's: a relay or client gets them by `join`")
    if role in ("directory", "gateway") and name is not None:
        raise UsageError(f"--name is a node's: a machine has one {role}")
    if role == "gateway" and tor_sockets is not None and not _is_from_environment("tor_sockets"):
        raise UsageError("--tor-sockets is for daemons: a gateway speaks with clients, and never with tor")
    found = places("directory" if role == "directory" else "gateway" if role == "gateway" else "node", name)
    text = _first(role, found, network, epoch, tor_sockets)
    _check(role, text, str(output or found.config))
    if output == Path("-"):
        write(text.encode())
        return
    file = output or found.config
    _write_new(file, text, _SHARED if found.unit is not None else _PRIVATE, force)
    after = _next(role, found.unit, output, name)
    if choices.json:
        write(json_line({"file": str(file), "kind": role, "next": after}))
        return
    write(text_line(f"{file}: the configuration of a {role}"))
    for command in after:
        write(text_line(f"next: {command}"))


def _is_from_environment(option: str) -> bool:
    """Tell whether an option was not asked for here: in a container the variable is set for all commands."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.ENVIRONMENT


def _first(role: str, found: Places, network: str | None, epoch: int | None, tor_sockets: Path | None) -> str:
    from hushcast_cli.first_config import Network, Role, first_config, first_gateway_config

    if role == "gateway":
        return first_gateway_config(found, os.getuid())
    meant: Role = "relay" if role == "relay" else "client" if role == "client" else "directory"
    own = None
    if meant == "directory":
        own = Network(network or f"network-{secrets.token_hex(3)}", epoch or DEFAULT_EPOCH)
    return first_config(meant, found, tor_sockets and tor_sockets.absolute(), own)


def _check(role: str, text: str, where: str) -> None:
    """Raise `UsageError` if the daemon could not use this; a node's is complete when it has a network."""
    from hushcast_directory.settings import DirectorySettings
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_node.settings import NodeSettings
    from hushcast_protocol.base.addresses import onion_address
    from hushcast_protocol.base.secrets import Seed
    from hushcast_runtime.config import NetworkSection, parse_settings
    from hushcast_runtime.network_file import network_section

    if role == "directory":
        parse_settings(text.encode(), where, DirectorySettings)
        return
    if role == "gateway":
        parse_settings(text.encode(), where, GatewaySettings)
        return
    somebody = Seed(bytes(32)).public()
    any_network = network_section(NetworkSection(name="any"), onion_address(somebody), somebody.hex())
    parse_settings((text + any_network).encode(), where, NodeSettings)


def _write_new(file: Path, text: str, mode: int, force: bool) -> None:
    from hushcast_cli.config_files import write_whole
    from hushcast_protocol.base.errors import UsageError

    if not force and os.path.lexists(file):
        raise UsageError(f"{file} is there already: --force replaces it")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(file, text, mode)


def _next(role: str, unit: str | None, output: Path | None, name: str | None) -> list[str]:
    if role in ("directory", "gateway"):
        config = f" --config {output}" if output else ""
        return [f"systemctl enable --now {unit}" if unit and not output else f"hushcast {role} run{config}"]
    more = f" --config {output}" if output else f" --name {name}" if name else ""
    return [f"hushcast join network.toml{more}"]
