"""`hushcast join`: puts the network that its founder gave out into a daemon's configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.operator_files import read_given
from hushcast_cli.configuration.places import ProgramPlaces, name_option, places
from hushcast_cli.options import config_option, json_option
from hushcast_runtime.toml import keys_if_any, read_keys, read_toml

if TYPE_CHECKING:
    from hushcast_brokers.network_file import BrokersNetworkSection
    from hushcast_central.network_file import CentralNetworkSection
    from hushcast_node.settings import JoinedNetworkSection
    from hushcast_runtime.processes.program import Program

    Joined = JoinedNetworkSection | CentralNetworkSection | BrokersNetworkSection

_HEADER = re.compile(r"\s*\[\s*network\s*\]\s*(#.*)?\Z")
_ANY_HEADER = re.compile(r"\s*\[")
_FOUNDERS = {"overlay": "directory", "central": "server", "brokers": "root"}
_ONLY = "only relays and clients, and proxies and other brokers, join a network"
_OURS = re.compile(r"\s*\[\[\s*network\s*\.\s*(proxies|authorities)\s*\]\]")


@click.command("join", short_help="Join a network, by the file that its operator gave out.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
@config_option("The daemon's configuration.")
@name_option
@click.option("--force", is_flag=True, help="Leave the network that the configuration names now.")
@json_option
@pass_choices
def join(choices: Choices, file: Path, config: Path | None, name: str | None, force: bool) -> None:
    """Join the network of FILE, the `network.toml` that its directory, server or root wrote.

    `-` is standard input. It is checked, and becomes the section `network` of the configuration that
    `hushcast init` made for a relay or a client; a proxy's or broker's is named with --config. Nothing is
    started.

    \b
    Examples:
      hushcast join network.toml
      ssh directory.example cat network.toml | hushcast join -
    """
    from hushcast_cli.configuration.config_files import write_edited
    from hushcast_cli.configuration.state import one_of, program_of
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_protocol.base.errors import UsageError

    if config is not None and name is not None:
        raise UsageError("give --config or --name, not both")
    target = config or places("node", name).config
    program = program_of(target)
    network = read_network(file)
    if program.needed is not None:
        network = program.needed.load()(network)
    text, before = _read_config(target)
    if not program.joins:
        raise UsageError(f"{target} is a {program.noun}'s: {_ONLY}")
    fresh = with_network(text, _section(network), str(target))
    settings = program.parse(fresh.encode(), str(target))
    role = program.role(settings)
    leaves = before is not None and before.network() != network.network()
    refused = _refusal(before, network, leaves)
    if refused and not force:
        raise UsageError(f"{target} {refused}")
    if before != network:
        write_edited(target, fresh)
    if leaves:
        note(f"what is in {settings.state} is the other network's: empty it, or name another as state")
    changes = before is not None and before != network
    named = config is not None and program.has_instances  # then nobody asks where a node usually is
    after = _next(program, None if named else places(role.init, name), target, changes)
    if choices.json:
        write(json_line({"file": str(target), "kind": role.name, "network": network.name, "next": [after]}))
    else:
        write(text_line(f"{target}: {one_of(role.name)} of the network {network.name}"))
        write(text_line(f"next: {after}"))


def read_network(file: Path) -> Joined:
    """Return what a network's founder gave out; raise `UsageError` that names the key and the reason."""
    from hushcast_brokers.network_file import BrokersNetworkFile
    from hushcast_central.network_file import CentralNetworkFile
    from hushcast_node.settings import NetworkFile
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.processes.config import parse_toml

    data, where = read_given(file)
    carrier = _carrier(keys_if_any(data).get("network"))
    try:
        if carrier == "central":
            return parse_toml(data, where, CentralNetworkFile).network
        if carrier == "brokers":
            return parse_toml(data, where, BrokersNetworkFile).network
        network = parse_toml(data, where, NetworkFile).network
        network.check_named()
        return network
    except UsageError as error:
        raise UsageError(f"{error} (it takes network.toml, as the {_FOUNDERS[carrier]} wrote it)") from None


def _carrier(network: Any) -> str:
    """Return which carrier a section names, the first one for a section that names none that is known."""
    carrier = network.get("carrier") if isinstance(network, dict) else None
    return carrier if isinstance(carrier, str) and carrier in _FOUNDERS else "overlay"


def _section(network: Joined) -> str:
    from hushcast_brokers.network_file import BrokersNetworkSection, brokers_section
    from hushcast_central.network_file import CentralNetworkSection, central_section
    from hushcast_protocol.base.addresses import Address
    from hushcast_runtime.processes.network_file import network_of_several, network_section

    if isinstance(network, CentralNetworkSection):
        return central_section(network.network(), Address(network.server), network.proxies())
    if isinstance(network, BrokersNetworkSection):
        return brokers_section(network.network(), network.address())
    if network.authorities:
        assert network.quorum is not None
        return network_of_several(network, network.authorities, network.quorum)
    assert network.directory is not None
    assert network.directory_key is not None
    return network_section(network, network.directory, network.directory_key)


def _refusal(before: Joined | None, network: Joined, leaves: bool) -> str | None:
    """Return why another network is not taken unasked; `None` for the same, whatever proxies it lists now."""
    if leaves:
        return "is in another network: --force leaves it"
    if before is None or _where(before) == _where(network):
        return None
    who, *_ = _where(network)
    return f"has another address or key of this network's {who}: ask its operator; --force takes it"


def _where(section: Joined) -> tuple[str, ...]:
    """Return who made a network, and what it is reached and known by."""
    from hushcast_brokers.network_file import BrokersNetworkSection
    from hushcast_central.network_file import CentralNetworkSection

    # The keys of a server, or a root, are the network.
    if isinstance(section, CentralNetworkSection):
        return "server", section.server
    if isinstance(section, BrokersNetworkSection):
        return "root", section.root
    if section.authorities:
        listed = sorted(f"{one.key} {one.address}" for one in section.authorities)
        return "directories", str(section.quorum), *listed
    return "directory", str(section.directory), str(section.directory_key)


def _read_config(target: Path) -> tuple[str, Joined | None]:
    """Return a configuration's text, and its network if it has one that can be used."""
    from hushcast_protocol.base.errors import UsageError, unreadable

    try:
        data = target.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"no configuration at {target}: `hushcast init relay` or `hushcast init client` makes one"
        ) from None
    except OSError as error:
        raise unreadable(target, error) from None
    found, text = read_keys(data, str(target)), data.decode().replace("\r\n", "\n")
    if "network" not in found:
        return text, None
    if found.get("role", "root") == "root":
        whose = _FOUNDERS[_carrier(found["network"])]
        raise UsageError(f"{target} is a {whose}'s: {_ONLY}")
    return text, _known(found["network"])


def _known(network: Any) -> Joined | None:
    """Return a section of a configuration; `None` for nothing that a daemon could have used."""
    import msgspec

    from hushcast_brokers.network_file import BrokersNetworkSection
    from hushcast_central.network_file import CentralNetworkSection
    from hushcast_node.settings import JoinedNetworkSection

    try:
        if _carrier(network) == "central":
            return msgspec.convert(network, CentralNetworkSection)
        if _carrier(network) == "brokers":
            return msgspec.convert(network, BrokersNetworkSection)
        return msgspec.convert(network, JoinedNetworkSection)
    except msgspec.ValidationError:
        return None


def with_network(text: str, section: str, where: str) -> str:
    """Return a configuration whose `[network]` is this section, all else as it was; raise `UsageError`.

    Comments and order stay, as the text is edited and not written anew. What came out is compared with what
    was asked for: TOML has ways to write a table that this does not look for.
    """
    from hushcast_cli.configuration.config_files import check_edited

    lines = text.splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        before, after = text.rstrip("\n") + "\n", ""
        before += "\n" if before.strip() else ""
    else:
        end = next((at for at in range(start + 1, len(lines)) if _ends(lines[at])), len(lines))
        before, after = "".join(lines[:start]), "".join(lines[end:])
    fresh = before + section + ("\n" + after if after else "")
    check_edited(fresh, read_toml(text) | read_toml(section), where, "network")
    return fresh


def _ends(line: str) -> bool:
    """Tell whether another section than the network and its proxies begins."""
    return _ANY_HEADER.match(line) is not None and _OURS.match(line) is None


def _next(program: Program, usual: ProgramPlaces | None, config: Path, running: bool) -> str:
    if usual is not None and usual.config == config and usual.unit is not None:
        return f"systemctl {'restart' if running else 'enable --now'} {usual.unit}"
    return program.run_command if config == places("node").config else f"hushcast run --config {config}"
