"""`hushcast central`: runs the server and the proxies of a central network, and looks for what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.configuration.config_summary import tell_summary
from hushcast_cli.configuration.places import PROXIES, config_of, config_of_any, places
from hushcast_cli.options import FILE, Choices, config_option, json_option, pass_choices

if TYPE_CHECKING:
    from hushcast_central.settings import ServerSettings

_server_option = config_option(
    "The configuration, TOML; the one that `hushcast init central-server` wrote unless given."
)
_proxy_option = config_option(
    "The configuration, TOML; the one that `hushcast init` wrote for a proxy unless given."
)


@click.group()
@json_option
def central() -> None:
    """Run the server or a proxy of a central network."""


@central.group()
@json_option
def server() -> None:
    """Run the server of a central network."""


@central.group()
@json_option
def proxy() -> None:
    """Run a proxy between a central network's users and its server."""


@server.command("run")
@_server_option
def run_server_command(config: Path | None) -> None:
    """Run the server in the foreground until SIGTERM or Ctrl-C.

    It writes `network.toml`, the section that the network's proxies and daemons need, into its state
    directory. SIGHUP makes it serve the proxies that the configuration lists then, and write that file anew.

    \b
    Example:
      hushcast central server run
    """
    from hushcast_central.process import run_server
    from hushcast_central.settings import ServerSettings
    from hushcast_runtime.processes.config import load_settings

    file = config_of("central-server", config)
    run_server(lambda: load_settings(file, ServerSettings))


@proxy.command("run")
@_proxy_option
def run_proxy_command(config: Path | None) -> None:
    """Run a proxy in the foreground until SIGTERM or Ctrl-C.

    It writes `proxy.toml`, the lines that the server's operator needs, into its state directory, and waits
    until the server lists it.

    \b
    Example:
      hushcast central proxy run
    """
    from hushcast_central.process import run_proxy
    from hushcast_central.settings import ProxySettings
    from hushcast_runtime.processes.config import load_settings

    file = config_of_any(PROXIES, config)
    run_proxy(lambda: load_settings(file, ProxySettings))


@server.command("check-config")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def check_server_config(choices: Choices, file: Path) -> None:
    """Show what a server's configuration says.

    Nothing is started. A configuration that cannot be used ends with exit code 2, the key that is wrong and
    why; `central server run` refuses to start with the same words.

    \b
    Example:
      hushcast central server check-config central-server.toml
    """
    from hushcast_central.settings import ServerSettings
    from hushcast_central.summary import server_summary
    from hushcast_runtime.processes.config import load_settings

    tell_summary(choices, file, "central-server", server_summary(load_settings(file, ServerSettings)))


@proxy.command("check-config")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def check_proxy_config(choices: Choices, file: Path) -> None:
    """Show what a proxy's configuration says.

    Nothing is started. A configuration that cannot be used ends with exit code 2, the key that is wrong and
    why; `central proxy run` refuses to start with the same words.

    \b
    Example:
      hushcast central proxy check-config publications-proxy.toml
    """
    from hushcast_central.settings import ProxySettings
    from hushcast_central.summary import proxy_summary
    from hushcast_runtime.processes.config import load_settings

    settings = load_settings(file, ProxySettings)
    tell_summary(choices, file, f"{settings.role}-proxy", proxy_summary(settings))


@server.command("doctor")
@_server_option
@json_option
@pass_choices
def server_doctor(choices: Choices, config: Path | None) -> None:
    """Look for what keeps a central server from working.

    Says what to do about it. Looks at the state, and asks a server that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, and which proxies are connected.
    Takes two minutes at most. Run it as the server's user or as root. Ends with exit code 1 if anything is
    bad.

    \b
    Example:
      sudo hushcast central server doctor
    """
    import trio

    from hushcast_central.process import SERVER
    from hushcast_central.settings import ServerSettings
    from hushcast_cli.operate.doctor import tell_findings
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.processes.doctor import examine_from_outside

    settings = load_settings(config_of("central-server", config), ServerSettings)
    tell_findings(choices, trio.run(examine_from_outside, settings, SERVER))


@proxy.command("doctor")
@_proxy_option
@json_option
@pass_choices
def proxy_doctor(choices: Choices, config: Path | None) -> None:
    """Look for what keeps a proxy from working.

    Says what to do about it. Looks at the state, and asks a proxy that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, and whether the server is reached
    and lists it. Takes two minutes at most. Run it as the proxy's user or as root. Ends with exit code 1 if
    anything is bad.

    \b
    Example:
      sudo hushcast central proxy doctor
    """
    import trio

    from hushcast_central.process import PROXY
    from hushcast_central.settings import ProxySettings
    from hushcast_cli.operate.doctor import tell_findings
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.processes.doctor import examine_from_outside

    settings = load_settings(config_of_any(PROXIES, config), ProxySettings)
    tell_findings(choices, trio.run(examine_from_outside, settings, PROXY))


@server.command("admit")
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
      hushcast central server admit proxy.toml
      ssh proxy.example cat proxy.toml | hushcast central server admit -
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
    after = how_to_apply(places("central-server"), "hushcast central server run", config, told)
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
    from hushcast_central.process import NETWORK_FILE

    return f"whoever is to join needs {settings.state_path() / NETWORK_FILE}, as the server writes it now"
