"""`hushcast doctor`: checks the daemon's requirements, and says what to do about missing ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.options import Choices, config_option, daemon_options, pass_choices, timeout_option

if TYPE_CHECKING:
    from hushcast.control_messages import Finding

EXAMINES = "waiting for the daemon to look at itself, a minute at most"
_MARKS = {"good": "✔", "warning": "!", "bad": "✘"}


@click.command(short_help="Look for what keeps the daemon from working.")
@config_option("Look at the state of the daemon with this configuration first, also when it does not start.")
@timeout_option
@daemon_options
@pass_choices
def doctor(choices: Choices, timeout: float | None, config: Path | None) -> None:
    """Look for what keeps the daemon from working, and say what to do.

    Looks at Tor, the clock, the roster, the disk, limits, and whether the onion service is published and can
    be reached from here through Tor. Takes a minute at most. Ends with exit code 1 if anything is bad.

    \b
    Examples:
      hushcast doctor
      sudo hushcast doctor --config /etc/hushcast/node.toml
    """
    from hushcast_cli.daemon_calls import ask

    if config is not None:
        from hushcast_cli.configuration.state import program_of
        from hushcast_protocol.base.errors import UsageError
        from hushcast_runtime.files import acting_as_owner
        from hushcast_runtime.processes.doctor import look_at_state

        program = program_of(config)
        if program.examine is not None:
            raise UsageError(f"{config} is a {program.noun}'s, which `{program.doctor_command}` looks at")
        settings = program.load(config)
        # Before the daemon is asked: one that refuses its state does not run.
        with acting_as_owner(settings.state_path()):
            looked, _ = look_at_state(settings.state_path(), program.version)
        tell_findings(choices, [looked])
        choices.socket = choices.socket or settings.socket_path()
    tell_findings(choices, ask(choices, lambda daemon: daemon.examine(), timeout, EXAMINES))


def tell_findings(choices: Choices, findings: list[Finding]) -> None:
    """Print what was found; raise `Failure` if any of it is bad."""
    from msgspec import structs

    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, text_line, write

    for finding in findings:
        if choices.json:
            write(json_line(structs.asdict(finding)))
            continue
        write(text_line(f"{_MARKS[finding.verdict]} {finding.check}: {finding.found}"))
        if finding.advice:
            write(text_line(f"  → {finding.advice}"))
    bad = [finding.check for finding in findings if finding.verdict == "bad"]
    if bad:
        raise Failure(f"not well: {', '.join(bad)}")
