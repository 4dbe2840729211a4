"""`hushcast device`: what one person's devices have in common, or take from each other."""

from __future__ import annotations

import click

from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.devices.links import export, import_
from hushcast_cli.options import daemon_options


@click.group(cls=CommandGroup)
@daemon_options
def device() -> None:
    """Carry subscriptions from one of your devices to another."""


for command in (export, import_):
    device.add_command(command)
