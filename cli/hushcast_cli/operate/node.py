"""`hushcast node run`, `hushcast check-config`: what takes a configuration."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.configuration.config_summary import tell_summary
from hushcast_cli.configuration.places import config_of
from hushcast_cli.options import FILE, Choices, config_option, json_option, pass_choices

_config_option = config_option("The configuration, TOML; the one that `hushcast init` wrote unless given.")


@click.group()
def node() -> None:
    """Run a node: a relay or a client."""


@node.command("run")
@_config_option
def run_node_command(config: Path | None) -> None:
    """Run a relay or a client in the foreground until SIGTERM or Ctrl-C.

    A configuration that could reach anything outside Tor is refused, with exit code 2. Logs go to standard
    error and never show topics, payloads, keys or onion addresses.

    \b
    Example:
      hushcast node run --config relay.toml
    """
    from hushcast_node.process import run_node
    from hushcast_node.settings import NodeSettings
    from hushcast_runtime.processes.config import load_settings

    file = config_of("node", config)
    run_node(lambda: load_settings(file, NodeSettings))


@click.command("check-config")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def check_config(choices: Choices, file: Path) -> None:
    """Check a configuration without starting anything.

    Says which key is wrong and why, with exit code 2; what would run it refuses to start with the same words.

    \b
    Example:
      hushcast check-config relay.toml
    """
    from hushcast_cli.configuration.state import load_daemon, program_of

    program = program_of(file)
    if program == "gateway":
        from hushcast_gateway.settings import GatewaySettings
        from hushcast_runtime.processes.config import load_settings

        load_settings(file, GatewaySettings)
        kind = "gateway"
    elif program == "located provider":
        from hushcast_located.service.settings import ProviderSettings
        from hushcast_runtime.processes.config import load_settings

        load_settings(file, ProviderSettings)
        kind = "located-provider"
    else:
        kind = load_daemon(file)[1].role
    tell_summary(choices, file, kind, {})
