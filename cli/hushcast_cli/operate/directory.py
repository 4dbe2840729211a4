"""`hushcast admin directory`: makes directories that agree, and examines them."""

from __future__ import annotations

import click

from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.operate.directory_audit import audit, evidence
from hushcast_cli.operate.directory_probe import probe
from hushcast_cli.operate.directory_set import init, members


@click.group(cls=CommandGroup)
def directory() -> None:
    """Make several directories that agree, and examine them."""


for _command in (init, members, probe, audit, evidence):
    directory.add_command(_command)
