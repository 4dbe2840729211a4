"""`hushcast status`: what the daemon says of itself."""

from __future__ import annotations

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import daemon_options, timeout_option


@click.command(short_help="Show what the daemon says of itself.")
@click.option(
    "--counters", is_flag=True, help="Show all counters, not only those that say that something is wrong."
)
@click.option("--check", is_flag=True, help="End with exit code 1 unless the daemon is ready; 3 without one.")
@timeout_option
@daemon_options
@pass_choices
def status(choices: Choices, counters: bool, check: bool, timeout: float | None) -> None:
    """Show whether the daemon is ready or what it waits for, its roster, links, subscriptions and troubles.

    It answers while the daemon is still starting. With --json it prints all that the daemon says. A daemon is
    ready while the network answers it.

    \b
    Examples:
      hushcast status --counters
      hushcast status --check --json
    """
    from hushcast_cli.chosen_daemon import ask
    from hushcast_cli.exits import Failure
    from hushcast_cli.operate.status_summary import summary, waits_for
    from hushcast_cli.output import json_line, table, write

    described = ask(choices, lambda daemon: daemon.status(), timeout)
    if choices.json:
        write(json_line(described))
    else:
        write(table(summary(described)))
        if counters:
            write(table((name, f"{count:>9,}") for name, count in described.get("counters", {}).items()))
    if check and not described["ready"]:
        raise Failure(f"the daemon is not ready: {waits_for(described)}")
