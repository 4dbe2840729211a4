"""`hushcast directory`: runs a directory, makes and examines several that agree, or simulates them."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.directory_audit import audit, evidence
from hushcast_cli.directory_probe import probe
from hushcast_cli.directory_set import init, members
from hushcast_cli.options import config_option
from hushcast_cli.places import config_of
from hushcast_cli.simulated_authorities import simulate_authorities


@click.group()
def directory() -> None:
    """Run a directory, make or examine several that agree, or simulate them."""


for _command in (init, members, probe, audit, evidence, simulate_authorities):
    directory.add_command(_command)


@directory.command("run")
@config_option("The configuration, TOML; the one that `hushcast init` wrote unless given.")
def run_directory_command(config: Path | None) -> None:
    """Run a network's directory in the foreground until SIGTERM or Ctrl-C.

    It writes `network.toml`, the section that the network's daemons need, into its state directory.

    \b
    Example:
      hushcast directory run --config directory.toml
    """
    from hushcast_directory.run import run_directory
    from hushcast_directory.settings import DirectorySettings
    from hushcast_runtime.config import load_settings

    file = config_of("directory", config)
    run_directory(lambda: load_settings(file, DirectorySettings))
