"""`hushcast node`, `hushcast check-config`: what takes a configuration."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.configuration.config_summary import tell_summary
from hushcast_cli.options import FILE, Choices, json_option, pass_choices


@click.group()
def node() -> None:
    """Run a node: a relay or a client."""


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
    from hushcast_cli.configuration.state import program_of

    program = program_of(file)
    tell_summary(choices, file, program.role(program.load(file)).name, {})
