"""`hushcast init`: writes the configuration that a daemon starts with."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from hushcast_cli.configuration.places import BROKERS, PROXIES, Kind, ProgramPlaces, name_option, places
from hushcast_cli.options import Choices, json_option, pass_choices
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH

if TYPE_CHECKING:
    from hushcast_cli.configuration.first_config import NetworkFoundation

DEFAULT_EPOCH = 3600  # seconds
LEAST_LAYERS, MOST_LAYERS, DEFAULT_LAYERS = 2, 4, 3  # as a configuration may have
ROLES = [
    *("relay", "client", "directory"),
    *("central-server", "publications-proxy", "deliveries-proxy"),
    *("broker-root", "broker", "tomography"),
    *("gateway", "located-provider"),
]
_NODES = ("relay", "client")
_WITHOUT_TOR = ("gateway", "located-provider")
_FOUNDERS = ("directory", "central-server", "broker-root")  # who makes a network, which the others join
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
    force: bool,
) -> None:
    """Write the configuration of a ROLE.

    ROLE is relay, client or directory; central-server, publications-proxy or deliveries-proxy of a central
    network; broker-root, broker or tomography of a network of brokers; gateway, for MQTT; or
    located-provider, which answers a located feed's subscribers. For root on a
    machine with the package it is that of the service, otherwise one for yourself. Nothing is started, and
    nothing that is there is replaced. A relay, client, proxy, broker or tomography service then needs a
    network: `hushcast join`.

    \b
    Examples:
      hushcast init directory --network example
      hushcast init relay
    """
    from hushcast_cli.configuration.state import one_of
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.errors import UsageError

    _check_whose(role, network, epoch, privacy, layers, seat)
    if role not in _NODES and name is not None:
        raise UsageError(f"--name is a node's: a machine has one {role}")
    if role in _WITHOUT_TOR and tor_sockets is not None and not _is_from_environment("tor_sockets"):
        raise UsageError(f"--tor-sockets is for daemons: a {role} goes through one, and never to tor")
    found = places(cast("Kind", "node" if role in _NODES else role), name)
    own = _own_role(role, seat)
    made = _founded(role, network, epoch, _privacy_lines(privacy, layers))
    text = _first(own, found, made, tor_sockets)
    _check(role, text, str(output or found.config))
    if output == Path("-"):
        write(text.encode())
        return
    file = output or found.config
    _write_new(file, text, _SHARED if found.unit is not None else _PRIVATE, force)
    after = _next(role, found, output, name)
    if choices.json:
        write(json_line({"file": str(file), "kind": own, "next": after}))
        return
    write(text_line(f"{file}: the configuration of {one_of(own)}"))
    for command in after:
        write(text_line(f"next: {command}"))


def _check_whose(
    role: str,
    network: str | None,
    epoch: int | None,
    privacy: str | None,
    layers: int | None,
    seat: str | None,
) -> None:
    """Raise `UsageError` for options that are another role's."""
    from hushcast_protocol.base.errors import UsageError

    if role not in _FOUNDERS and (network, epoch) != (None, None):
        raise UsageError(
            "--network and --epoch are a directory's, a central server's or a root's:"
            " others get them by `join`"
        )
    if role != "broker-root" and (privacy, layers) != (None, None):
        raise UsageError("--privacy and --layers are a root's: others get them by `join`")
    if layers is not None and privacy != "full":
        raise UsageError("--layers is for --privacy full")
    if role != "broker" and seat is not None:
        raise UsageError("--role is a broker's, which is not the root")


def _is_from_environment(option: str) -> bool:
    """Tell whether an option was not asked for here: in a container the variable is set for all commands."""
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.ENVIRONMENT


def _own_role(role: str, seat: str | None) -> str:
    """Return the role as daemons are told apart by it: a broker's seat comes first."""
    if role == "tomography":
        return "tomography-service"
    if role in BROKERS:
        return "root-broker" if role == "broker-root" else f"{seat or 'edge'}-broker"
    return role


def _founded(role: str, network: str | None, epoch: int | None, more: str) -> NetworkFoundation | None:
    """Return the network that such a daemon makes."""
    from hushcast_cli.configuration.first_config import NetworkFoundation

    if role not in _FOUNDERS:
        return None
    return NetworkFoundation(network or f"network-{secrets.token_hex(3)}", epoch or DEFAULT_EPOCH, more)


def _privacy_lines(privacy: str | None, layers: int | None) -> str:
    if privacy is None:
        return ""
    lines = f'# What brokers learn; it cannot be changed later, either.\nprivacy = "{privacy}"\n'
    return lines if privacy != "full" else f"{lines}layers = {layers or DEFAULT_LAYERS}\n"


def _first(
    role: str, found: ProgramPlaces, network: NetworkFoundation | None, tor_sockets: Path | None
) -> str:
    from hushcast_cli.configuration.first_config import (
        Role,
        first_config,
        first_gateway_config,
        first_provider_config,
    )

    if role == "gateway":
        return first_gateway_config(found, os.getuid())
    if role == "located-provider":
        return first_provider_config(found, places("node").socket)
    return first_config(cast("Role", role), found, tor_sockets and tor_sockets.absolute(), network)


def _check(role: str, text: str, where: str) -> None:
    """Raise `UsageError` if the daemon could not use this; one that joins is complete with a network."""
    from hushcast_brokers.broker.settings import parse_broker
    from hushcast_brokers.network_file import brokers_section
    from hushcast_brokers.tomography.settings import TomographySettings
    from hushcast_central.network_file import central_section
    from hushcast_central.settings import ProxySettings, ServerSettings
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_gateway.settings import GatewaySettings
    from hushcast_located.service.settings import ProviderSettings
    from hushcast_node.settings import NodeSettings
    from hushcast_protocol.base.addresses import onion_address
    from hushcast_protocol.base.secrets import Seed
    from hushcast_protocol.brokers.network import BrokersNetwork
    from hushcast_protocol.central.introduction import SealingKey
    from hushcast_protocol.central.network import CentralNetwork
    from hushcast_runtime.processes.config import NetworkSection, parse_settings
    from hushcast_runtime.processes.network_file import network_section

    somebody = Seed(bytes(32)).public()
    address = onion_address(somebody)
    if role == "directory":
        parse_settings(text.encode(), where, DirectorySettings)
    elif role == "central-server":
        parse_settings(text.encode(), where, ServerSettings)
    elif role == "gateway":
        parse_settings(text.encode(), where, GatewaySettings)
    elif role == "located-provider":  # complete with what the feed's owner gives out
        from_owner = f'owner = "{somebody.hex()}"\nfeed = "/feed.link"\n'
        parse_settings((from_owner + text).encode(), where, ProviderSettings)
    elif role == "broker-root":
        parse_broker(text.encode(), where)
    elif role in ("broker", "tomography"):
        any_tree = BrokersNetwork("any", "clear", DEFAULT_EPOCH, somebody)
        whole = (text + brokers_section(any_tree, address)).encode()
        parse_broker(whole, where) if role == "broker" else parse_settings(whole, where, TomographySettings)
    elif role in PROXIES:
        sealing = SealingKey(bytes(32)).public()
        any_central = CentralNetwork("any", "hardened", DEFAULT_EPOCH, somebody, sealing)
        parse_settings((text + central_section(any_central, address, ())).encode(), where, ProxySettings)
    else:
        any_network = network_section(NetworkSection(name="any"), address, somebody.hex())
        parse_settings((text + any_network).encode(), where, NodeSettings)


def _write_new(file: Path, text: str, mode: int, force: bool) -> None:
    from hushcast_cli.configuration.config_files import write_whole
    from hushcast_protocol.base.errors import UsageError

    if not force and os.path.lexists(file):
        raise UsageError(f"{file} is there already: --force replaces it")
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(file, text, mode)


def _next(role: str, found: ProgramPlaces, output: Path | None, name: str | None) -> list[str]:
    config = f" --config {output}" if output else ""
    if role in (*_FOUNDERS, "gateway"):
        run = {"central-server": "central server", "broker-root": "broker"}.get(role, role)
        start = f"systemctl enable --now {found.unit}" if found.unit and not output else ""
        return [start or f"hushcast {run} run{config}"]
    if role == "located-provider":
        start = f"systemctl enable --now {found.unit}" if found.unit and not output else ""
        return [
            f"hushcast located check-config {output or found.config}",
            start or f"hushcast located provide{config}",
        ]
    if role in (*PROXIES, "broker", "tomography"):  # `join` looks for a node's unless told
        return [f"hushcast join network.toml --config {output or found.config}"]
    return [f"hushcast join network.toml{config or (f' --name {name}' if name else '')}"]
