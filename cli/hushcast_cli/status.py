"""`hushcast status`: what the daemon says of itself."""

from __future__ import annotations

from typing import Any

import click

from hushcast_cli.options import Choices, daemon_options, pass_choices, timeout_option


@click.command(short_help="Show what the daemon says of itself.")
@timeout_option
@daemon_options
@pass_choices
def status(choices: Choices, timeout: float | None) -> None:
    """Show the daemon's role, roster, links, subscriptions and Tor's state.

    It answers while the daemon is still starting.

    \b
    Example:
      hushcast status --json
    """
    from hushcast.words import Status, StatusReport
    from hushcast_cli.asking import ask_once, daemon_socket, run
    from hushcast_cli.output import json_line, text_line, write

    described = run(lambda: ask_once(daemon_socket(choices), Status(), StatusReport), timeout).status
    if choices.json:
        write(json_line(described))
        return
    width = max((len(name) for name in described), default=0)
    for name, value in described.items():
        write(text_line(f"{name.ljust(width)}  {_readable(value)}"))


def _readable(value: Any) -> str:
    if isinstance(value, dict):
        return (
            ", ".join(f"{name.replace('_', ' ')} {_readable(part)}" for name, part in value.items()) or "none"
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
