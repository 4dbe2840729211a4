"""`hushcast init`: writes the configuration that a daemon starts with."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.places import ProgramPlaces, name_option, places
from hushcast_cli.options import json_option
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH
from hushcast_runtime.processes.program import Program, ProgramRole, programs, role_called

if TYPE_CHECKING:
    from hushcast_cli.configuration.first_config import NetworkFoundation
    from hushcast_runtime.transports.endpoints import Endpoint

DEFAULT_EPOCH = 3600  # seconds
LEAST_LAYERS, MOST_LAYERS, DEFAULT_LAYERS = 2, 4, 3  # as a configuration may have
ROLES = list(dict.fromkeys(role.init for program in programs() for role in program.roles))
_SHARED = 0o640  # a service reads its configuration through its group
_PRIVATE = 0o600


@click.command("init")
@click.argument("role", type=click.Choice(ROLES), metavar="ROLE")
@name_option
@click.option(
    "--network",
    metavar="N",
    help="The network of a directory, server or root: any name; a random one unless given.",
)
@click.option(
    "--epoch",
    type=click.IntRange(MIN_EPOCH, MAX_EPOCH),
    metavar="S",
    help=f"The epochs of a directory, server or root, in seconds; {DEFAULT_EPOCH} unless given.",
)
@click.option(
    "--privacy",
    type=click.Choice(["clear", "community", "full"]),
    help="What the brokers of a root learn: `clear` unless given; with `community` those in it read what is "
    "asked for, with `full` none.",
)
@click.option(
    "--layers",
    type=click.IntRange(LEAST_LAYERS, MOST_LAYERS),
    metavar="M",
    help=f"With `--privacy full`: brokers in a row that learn more together; {DEFAULT_LAYERS} unless given.",
)
@click.option(
    "--role",
    "seat",
    type=click.Choice(["inner", "edge"]),
    help="A broker's: `inner` has brokers below it, `edge` has clients, and is meant unless given.",
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
@click.option(
    "--socks",
    metavar="E",
    help="A client's: use this SOCKS port of a tor and nothing else of it, 127.0.0.1:PORT or unix:/PATH.",
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
    privacy: str | None,
    layers: int | None,
    seat: str | None,
    output: Path | None,
    tor_sockets: Path | None,
    socks: str | None,
    force: bool,
) -> None:
    """Write the configuration of a ROLE.

    ROLE is relay, client or directory; central-server, publications-proxy or deliveries-proxy of a central
    network; broker-root, broker or tomography of a network of brokers; gateway, for MQTT;
    located-provider, which answers a located feed's subscribers; or located-owner, which signs a feed. For
    root on a machine with the package it is that of the service, otherwise one for yourself. Nothing is
    started, and nothing that is there is replaced. A relay, client, proxy, broker or tomography service then
    needs a network: `hushcast join`.

    \b
    Examples:
      hushcast init directory --network example
      hushcast init relay
    """
    from hushcast_cli.configuration.first_config import MachineFacts, first_config
    from hushcast_cli.configuration.state import one_of
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.errors import UsageError

    program, own = role_called(role)
    own = next((one for one in program.roles if (one.init, one.word) == (role, seat)), own)
    _check_whose(own, network, epoch, privacy, layers, seat)
    if not program.has_instances and name is not None:
        raise UsageError(f"--name is a node's: a machine has one {role}")
    tor = _tor(program, own, tor_sockets, socks)
    found = places(role, name)
    if output not in (None, Path("-")):
        found = replace(found, config=output)
    made = _founded(own, network, epoch, _privacy_lines(privacy, layers))
    machine = MachineFacts(os.getuid(), places("node").socket or MachineFacts.daemon)
    text = first_config(own.name, found, tor, made, machine)
    whole = text if own.founded else program.completed(text)
    program.parse(whole.encode(), str(output or found.config))
    if output == Path("-"):
        write(text.encode())
        return
    file = output or found.config
    _write_new(file, text, _SHARED if found.unit is not None else _PRIVATE, force)
    _tell_of_shared_state(places(role, name).config, found)
    after = _next(program, own, found, output, name)
    if choices.json:
        write(json_line({"file": str(file), "kind": own.name, "next": after}))
        return
    write(text_line(f"{file}: the configuration of {one_of(own.name)}"))
    for command in after:
        write(text_line(f"next: {command}"))


def _check_whose(
    role: ProgramRole,
    network: str | None,
    epoch: int | None,
    privacy: str | None,
    layers: int | None,
    seat: str | None,
) -> None:
    """Raise `UsageError` for options that are another role's."""
    from hushcast_protocol.base.errors import UsageError

    if role.founded is None and (network, epoch) != (None, None):
        raise UsageError(
            "--network and --epoch are a directory's, a central server's or a root's:"
            " others get them by `join`"
        )
    if role.founded != "brokers" and (privacy, layers) != (None, None):
        raise UsageError("--privacy and --layers are a root's: others get them by `join`")
    if layers is not None and privacy != "full":
        raise UsageError("--layers is for --privacy full")
    if role.init != "broker" and seat is not None:
        raise UsageError("--role is a broker's, which is not the root")


def _tor(
    program: Program, role: ProgramRole, sockets: Path | None, socks: str | None
) -> Path | Endpoint | None:
    """Return the tor that was asked for: a directory of its sockets, or its SOCKS port."""
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.transports.endpoints import parse_endpoint

    is_asked_for = sockets is not None and not _is_from_environment("tor_sockets")
    if is_asked_for and program.key_files is None:
        raise UsageError(f"--tor-sockets is for daemons: a {role.init} goes through one, and never to tor")
    if socks is None:
        return sockets and sockets.absolute()
    if role.init != "client":
        raise UsageError("--socks is a client's: others have onion services, which take tor's control port")
    if is_asked_for:
        raise UsageError("--socks and --tor-sockets exclude each other")
    try:
        return parse_endpoint(socks)
    except UsageError as error:
        raise UsageError(f"--socks: {error}") from None


def _is_from_environment(option: str) -> bool:
    """Tell whether an option was not asked for here: in a container the variable is set for all commands."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.ENVIRONMENT


def _founded(
    role: ProgramRole, network: str | None, epoch: int | None, more: str
) -> NetworkFoundation | None:
    """Return the network that such a daemon makes."""
    from hushcast_cli.configuration.first_config import NetworkFoundation

    if role.founded is None:
        return None
    return NetworkFoundation(network or f"network-{secrets.token_hex(3)}", epoch or DEFAULT_EPOCH, more)


def _privacy_lines(privacy: str | None, layers: int | None) -> str:
    if privacy is None:
        return ""
    lines = f'# What brokers learn; it cannot be changed later, either.\nprivacy = "{privacy}"\n'
    return lines if privacy != "full" else f"{lines}layers = {layers or DEFAULT_LAYERS}\n"


def _tell_of_shared_state(usual: Path, found: ProgramPlaces) -> None:
    """Say so where the configuration at the usual place keeps its state in the same directory."""
    from hushcast_cli.configuration.config_files import parsed
    from hushcast_cli.output import note

    with suppress(OSError, UnicodeDecodeError):
        if found.config != usual and (parsed(usual.read_text()) or {}).get("state") == str(found.state):
            shared = f"the state directory {found.state}, too"
            note(f"note: {usual} has {shared}: give this one a `state` of its own")


def _write_new(file: Path, text: str, mode: int, force: bool) -> None:
    from hushcast_cli.configuration.config_files import write_whole
    from hushcast_protocol.base.errors import UsageError

    if not force and os.path.lexists(file):
        raise UsageError(f"{file} is there already: --force replaces it")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(file, text, mode)


def _next(
    program: Program, role: ProgramRole, found: ProgramPlaces, output: Path | None, name: str | None
) -> list[str]:
    config = f" --config {output}" if output else ""
    if role.founded or program.key_files is None:
        start = f"systemctl enable --now {found.unit}" if found.unit and not output else ""
        check = [f"hushcast admin check-config {output or found.config}"] if role.head else []
        return [*check, start or (f"hushcast run{config}" if output else program.run_command)]
    if not program.has_instances:  # `join` looks for a node's unless told
        return [f"hushcast join network.toml --config {output or found.config}"]
    return [f"hushcast join network.toml{config or (f' --name {name}' if name else '')}"]
