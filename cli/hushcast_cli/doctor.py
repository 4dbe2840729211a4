"""`hushcast doctor`: checks the daemon's requirements, and says what to do about missing ones."""

from __future__ import annotations

import click

from hushcast_cli.options import Choices, daemon_options, pass_choices, timeout_option

_MARKS = {"good": "✔", "warning": "!", "bad": "✘"}


@click.command(short_help="Look for what keeps the daemon from working.")
@timeout_option
@daemon_options
@pass_choices
def doctor(choices: Choices, timeout: float | None) -> None:
    """Look for what keeps the daemon from working, and say what to do.

    Looks at Tor, the clock, the roster, the disk, limits, and whether the onion service is published and can
    be reached from here through Tor. Takes a minute at most. Ends with exit code 1 if anything is bad.

    \b
    Example:
      hushcast doctor
    """
    from msgspec import structs

    from hushcast.words import DoctorReport, Examine
    from hushcast_cli.asking import ask_once, daemon_socket, run
    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, text_line, write

    findings = run(lambda: ask_once(daemon_socket(choices), Examine(), DoctorReport), timeout).findings
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
