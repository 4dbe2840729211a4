"""`hushcast top`: a terminal view of a daemon, or of all daemons of a testnet."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FOLDER, node_option, socket_option
from hushcast_protocol.base.errors import UsageError


@click.command(short_help="Show a daemon, or a whole testnet, on this terminal.")
@click.option(
    "--dir",
    "directory",
    type=FOLDER,
    metavar="D",
    help="All daemons of the testnet in this directory, instead of one.",
)
@socket_option
@node_option
@pass_choices
def top(choices: Choices, directory: Path | None) -> None:
    """Show a daemon, or all of a testnet, on this terminal until `q` is pressed.

    \b
    Example:
      hushcast top --dir /tmp/testnet
    """
    from hushcast_cli.chosen_daemon import daemon_socket
    from hushcast_cli.output import is_terminal

    if directory is None:
        sockets = {"daemon": daemon_socket(choices)}
    else:
        from hushcast_testnet.inventory import load

        members = load(directory).members
        sockets = {member.name: Path(member.socket) for member in members if member.socket is not None}
    if not is_terminal():
        raise UsageError("top draws on a terminal: for programs there is `hushcast status --json`")
    try:
        from hushcast_cli.operate.dashboard import Dashboard
    except ImportError:
        from hushcast_runtime.extras import how_to_get

        raise UsageError(f"this needs textual: {how_to_get('tui')}") from None
    Dashboard(sockets).run()
