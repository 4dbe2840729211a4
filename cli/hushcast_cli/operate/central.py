"""`hushcast admin central`: says which proxies the server of a central network serves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.configuration.places import config_of, places
from hushcast_cli.options import config_option, json_option

if TYPE_CHECKING:
    from hushcast_central.settings import ServerSettings

_server_option = config_option(
    "The configuration, TOML; the one that `hushcast init central-server` wrote unless given."
)


@click.group(cls=CommandGroup)
@json_option
def central() -> None:
    """Have the server of a central network serve proxies."""


@central.command("admit")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE")
@_server_option
@json_option
@pass_choices
def admit(choices: Choices, file: Path, config: Path | None) -> None:
    """Have the server serve a proxy.

    FILE is what the proxy wrote as `proxy.toml`; `-` is standard input. It is checked, and becomes a section
    `proxies` of the server's configuration, where all else stays as it is. A server that runs serves the
    proxy at once. To serve one no more, take its lines out and reload.

    \b
    Examples:
      hushcast admin central admit proxy.toml
      ssh proxy.example cat proxy.toml | hushcast admin central admit -
    """
    from hushcast_cli.configuration.proxy_admission import admit_proxy, read_proxy
    from hushcast_cli.configuration.reload import how_to_apply, tell_daemon
    from hushcast_cli.output import json_line, note, text_line, write
    from hushcast_protocol.central.network import missing_roles

    target = config_of("central-server", config)
    admitted = read_proxy(file)
    settings, is_new = admit_proxy(target, admitted)
    told = tell_daemon(settings.state_path())
    missing = missing_roles(proxy.role for proxy in settings.proxies())
    after = how_to_apply(places("central-server"), "hushcast run central-server", config, told)
    if choices.json:
        line = {"file": str(target), "role": admitted.role, "new": is_new, "missing": missing, "next": after}
        write(json_line(line))
        return
    write(text_line(f"{target}: {'lists' if is_new else 'listed already'} a proxy for {admitted.role}"))
    for command in after:
        write(text_line(f"next: {command}"))
    for role in missing:
        note(f"nobody can use the network yet: a proxy for {role} is missing")
    if not missing:
        note(_give_out(settings))


def _give_out(settings: ServerSettings) -> str:
    from hushcast_central.server.process import NETWORK_FILE

    return f"whoever is to join needs {settings.state_path() / NETWORK_FILE}, as the server writes it now"
