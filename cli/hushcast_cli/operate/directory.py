"""`hushcast directory`: runs and examines a directory, makes several that agree, or simulates them."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.configuration.places import config_of
from hushcast_cli.operate.directory_audit import audit, evidence
from hushcast_cli.operate.directory_probe import probe
from hushcast_cli.operate.directory_set import init, members
from hushcast_cli.options import Choices, config_option, json_option, pass_choices
from hushcast_cli.testnets.directory_simulation import simulate_authorities


@click.group()
def directory() -> None:
    """Run or examine a directory, make several that agree, or simulate them."""


for _command in (init, members, probe, audit, evidence, simulate_authorities):
    directory.add_command(_command)


@directory.command("run")
@config_option("The configuration, TOML; the one that `hushcast init` wrote unless given.")
def run_directory_command(config: Path | None) -> None:
    """Run a network's directory in the foreground until SIGTERM or Ctrl-C.

    It writes `network.toml`, the section that the network's daemons need, into its state directory. SIGHUP
    makes it list the relays that a closed network names then, and vote for what `[authorities]` says then.

    \b
    Example:
      hushcast directory run --config directory.toml
    """
    from hushcast_directory.server.process import run_directory
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_runtime.processes.config import load_settings

    file = config_of("directory", config)
    run_directory(lambda: load_settings(file, DirectorySettings))


@directory.command("doctor")
@config_option("The configuration, TOML; the one that `hushcast init` wrote unless given.")
@json_option
@pass_choices
def directory_doctor(choices: Choices, config: Path | None) -> None:
    """Look for what keeps a directory from working.

    Says what to do about it. Looks at the state, and asks a directory that runs for its Tor, clock, disk and
    limits, whether its onion service is published and reached from here, how old its roster is and how many
    relays are in it; of several that agree also which others are reached, whether this one's votes count,
    and what is kept or said against whom. Takes two minutes at most. Run it as the directory's user or as
    root. Ends with exit code 1 if anything is bad.

    \b
    Example:
      sudo hushcast directory doctor
    """
    import trio

    from hushcast_cli.operate.doctor import tell_findings
    from hushcast_directory.server.process import DIRECTORY
    from hushcast_directory.server.settings import DirectorySettings
    from hushcast_runtime.processes.config import load_settings
    from hushcast_runtime.processes.doctor import examine_from_outside

    settings = load_settings(config_of("directory", config), DirectorySettings)
    tell_findings(choices, trio.run(examine_from_outside, settings, DIRECTORY))
