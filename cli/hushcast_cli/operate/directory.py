"""`hushcast admin directory`: makes directories that agree, examines or simulates them."""

from __future__ import annotations

import click

from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.operate.directory_audit import audit, evidence
from hushcast_cli.operate.directory_probe import probe
from hushcast_cli.operate.directory_set import init, members
from hushcast_cli.testnets.directory_simulation import simulate_authorities


@click.group(cls=CommandGroup)
def directory() -> None:
    """Make several directories that agree, examine or simulate them."""


for _command in (init, members, probe, audit, evidence, simulate_authorities):
    directory.add_command(_command)
