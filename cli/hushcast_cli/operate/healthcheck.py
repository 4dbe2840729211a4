"""`hushcast healthcheck`: whether a program of this machine is ready, for what looks after containers."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.state import program_of
from hushcast_cli.options import config_option, json_option


@click.command(short_help="Tell by the exit code whether a program is ready.")
@config_option("The program's configuration, TOML.", required=True)
@json_option
@pass_choices
def healthcheck(choices: Choices, config: Path) -> None:
    """Tell whether the program with this configuration is ready, and what it does.

    Works for every program that keeps a state. Ends with exit code 1 unless it is ready, 3 where it
    does not run. What is ready is what the metric `ready` says. Run it as the program's user, or as root.

    \b
    Example:
      hushcast healthcheck --config /etc/hushcast/node.toml
    """
    import trio

    from hushcast.errors import NoDaemon
    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_runtime.processes.readiness_socket import ask_readiness

    program = program_of(config)
    readiness = trio.run(ask_readiness, program.load(config).ready_socket())
    if readiness is None:
        raise NoDaemon(f"no {program.noun} of {config} runs, or it is another user's")
    if choices.json:
        write(json_line({"ready": readiness.ready, "doing": readiness.doing}))
    elif readiness.ready:
        write(text_line(f"ready: {readiness.doing}"))
    if not readiness.ready:
        raise Failure(f"the {program.noun} is not ready: {readiness.doing}")
