"""`hushcast admin`: what operators of daemons and networks need now and then."""

from __future__ import annotations

from collections.abc import Iterable

import click

from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.options import json_option


@click.group(cls=CommandGroup, short_help="Check, back up, upgrade; keys; directories and brokers.")
@json_option
def admin() -> None:
    """Look after daemons and the networks that you run."""


@admin.add_later
def _commands() -> Iterable[click.Command]:
    from hushcast_cli.operate.backup import backup, restore
    from hushcast_cli.operate.broker import broker
    from hushcast_cli.operate.central import central
    from hushcast_cli.operate.check_config import check_config
    from hushcast_cli.operate.community import community
    from hushcast_cli.operate.directory import directory
    from hushcast_cli.operate.key import key
    from hushcast_cli.operate.step_back import step_back
    from hushcast_cli.operate.tomography import tomography
    from hushcast_cli.operate.upgrade_config import upgrade_config

    return (
        check_config,
        upgrade_config,
        backup,
        restore,
        step_back,
        key,
        directory,
        central,
        broker,
        community,
        tomography,
    )
