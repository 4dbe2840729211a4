"""`hushcast join`: puts the network that a directory gave out into a node's configuration."""

from __future__ import annotations

import re
import stat
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.options import Choices, json_option, pass_choices
from hushcast_cli.places import name_option, places

if TYPE_CHECKING:
    from hushcast_node.settings import JoinedNetworkSection

_HEADER = re.compile(r"\s*\[\s*network\s*\]\s*(#.*)?\Z")
_OTHER_DIRECTORY = (
    "has another address or key of this network's directory: ask its operator; --force takes it"
)
_ANY_HEADER = re.compile(r"\s*\[")


@click.command("join")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
@click.option("--config", type=click.Path(path_type=Path), metavar="F", help="The node's configuration.")
@name_option
@click.option("--force", is_flag=True, help="Leave the network that the configuration names now.")
@json_option
@pass_choices
def join(choices: Choices, file: Path, config: Path | None, name: str | None, force: bool) -> None:
    """Join the network of FILE, which its directory wrote as `network.toml`; `-` is standard input.

    It is checked, and becomes the section `network` of the configuration that `hushcast init` made.
    Nothing is started.

    \b
    Examples:
      hushcast join network.toml
      ssh directory.example cat network.toml | hushcast join -
    """
    from hushcast_cli.config_files import write_whole
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_node.settings import NodeSettings
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.config import parse_settings
    from hushcast_runtime.network_file import network_section

    if config is not None and name is not None:
        raise UsageError("give --config or --name, not both")
    usual = places("node", name)
    target = config or usual.config
    network = read_network(file)
    text, before = _read_config(target)
    section = network_section(network, network.directory, network.directory_key)
    fresh = with_network(text, section, str(target))
    settings = parse_settings(fresh.encode(), str(target), NodeSettings)
    changes = before is not None and before != network
    leaves = before is not None and before.network() != network.network()
    if changes and not force:
        what = "is in another network: --force leaves it" if leaves else _OTHER_DIRECTORY
        raise UsageError(f"{target} {what}")
    if before != network:
        write_whole(target, fresh, stat.S_IMODE(target.stat().st_mode))
    if leaves:
        note(f"what is in {settings.state} is the other network's: empty it, or name another as state")
    after = _next(usual.unit if config is None else None, config or usual.config, changes)
    if choices.json:
        write(
            json_line({"file": str(target), "kind": settings.role, "network": network.name, "next": [after]})
        )
    else:
        write(text_line(f"{target}: a {settings.role} of the network {network.name}"))
        write(text_line(f"next: {after}"))


def read_network(file: Path) -> JoinedNetworkSection:
    """Return what a directory gave out; raise `UsageError` that names the key and the reason."""
    from hushcast_node.settings import NetworkFile
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.config import MAX_CONFIG, parse_toml

    where = "standard input" if file == Path("-") else str(file)
    try:
        if file == Path("-"):
            data = sys.stdin.buffer.read(MAX_CONFIG + 1)
        else:
            with file.open("rb") as opened:
                data = opened.read(MAX_CONFIG + 1)
    except OSError as error:
        raise UsageError(f"{where} cannot be read: {error.strerror}") from None
    try:
        return parse_toml(data, where, NetworkFile).network
    except UsageError as error:
        raise UsageError(f"{error} (it takes network.toml, as the directory wrote it)") from None


def _read_config(target: Path) -> tuple[str, JoinedNetworkSection | None]:
    """Return a configuration's text, and its network if it has one that can be used."""
    import msgspec

    from hushcast_node.settings import JoinedNetworkSection
    from hushcast_protocol.base.errors import UsageError

    try:
        text = target.read_text()
        found = tomllib.loads(text)
    except FileNotFoundError:
        raise UsageError(
            f"no configuration at {target}: `hushcast init relay` or `hushcast init client` makes one"
        ) from None
    except OSError as error:
        raise UsageError(f"{target} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{target} is not TOML: {error}") from None
    if "network" not in found:
        return text, None
    if "role" not in found:
        raise UsageError(f"{target} is a directory's: only relays and clients join a network")
    try:
        return text, msgspec.convert(found["network"], JoinedNetworkSection)
    except msgspec.ValidationError:
        return text, None  # nothing that a daemon could have used


def with_network(text: str, section: str, where: str) -> str:
    """Return a configuration whose `[network]` is this section, all else as it was; raise `UsageError`.

    Comments and order stay, as the text is edited and not written anew. What came out is compared with what
    was asked for: TOML has ways to write a table that this does not look for.
    """
    from hushcast_protocol.base.errors import UsageError

    lines = text.splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if _HEADER.match(line)), None)
    if start is None:
        before, after = text.rstrip("\n") + "\n", ""
        before += "\n" if before.strip() else ""
    else:
        end = next((at for at in range(start + 1, len(lines)) if _ANY_HEADER.match(lines[at])), len(lines))
        before, after = "".join(lines[:start]), "".join(lines[end:])
    fresh = before + section + ("\n" + after if after else "")
    expected = tomllib.loads(text) | tomllib.loads(section)
    try:
        if tomllib.loads(fresh) == expected:
            return fresh
    except ValueError:
        pass
    raise UsageError(f"{where}: its network is written in a way that cannot be edited: put it in by hand")


def _next(unit: str | None, config: Path, running: bool) -> str:
    if unit is not None:
        return f"systemctl {'restart' if running else 'enable --now'} {unit}"
    usual = places("node").config
    return "hushcast node run" if config == usual else f"hushcast node run --config {config}"
