"""`hushcast doctor`: looks for what keeps a program from working, whether it runs or not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.configuration.chosen_program import (
    chosen_program,
    program_argument,
    program_config_option,
)
from hushcast_cli.options import daemon_options, timeout_option
from hushcast_runtime.processes.program import Program

if TYPE_CHECKING:
    from hushcast.control_messages import Finding

_MARKS = {"good": "✔", "warning": "!", "bad": "✘"}
_EXAMINES = "waiting for the program to look at itself, two minutes at most"


@click.command(short_help="Look for what keeps a program from working, running or not.")
@program_argument
@program_config_option
@timeout_option
@daemon_options
@pass_choices
def doctor(choices: Choices, program: str | None, config: Path | None, timeout: float | None) -> None:
    """Look for what keeps a program from working, and say what to do.

    Asks the daemon of --node, --socket or HUSHCAST_SOCKET, or the one at the usual place. With PROGRAM or
    --config, and where no daemon answers at the usual place, it looks at a program by its configuration,
    whether that runs or not: at the configuration, the state and who may use it, the disk; then it asks the
    program, or tells what became of its unit and what to type next. --config goes before HUSHCAST_SOCKET.

    A program that runs looks at Tor, clock and limits, whether its onion service is published and reached
    from here, and at what is its own: roster, directories, proxies, brokers, ports, certificates, links.
    Takes two minutes at most. Run it as the program's user or as root. Ends with exit code 1 if anything is
    bad.

    \b
    Examples:
      hushcast doctor
      sudo hushcast doctor directory
      sudo hushcast doctor --config /etc/hushcast/node.toml
    """
    from hushcast.errors import NoDaemon
    from hushcast_cli.chosen_daemon import ask

    if program is not None or config is not None:
        found = _looked_at(*chosen_program(program, config), timeout)
    elif choices.node is not None and (served := _without_socket(choices.node)) is not None:
        found = _looked_at(*chosen_program(None, served), timeout)
    else:
        try:
            found = ask(choices, lambda daemon: daemon.examine(), timeout, _EXAMINES)
        except NoDaemon:
            if (there := _config_beside(choices)) is None:
                raise
            found = _looked_at(*chosen_program(None, there), timeout)
    tell_findings(choices, found)


def _without_socket(name: str) -> Path | None:
    """Return the configuration of a testnet's member that has no control socket; `None` where it has one."""
    from hushcast_cli.last_testnet import control_socket, testnet_member

    member = testnet_member(name)
    return Path(member.config) if control_socket(member) is None else None


def _config_beside(choices: Choices) -> Path | None:
    """Return the configuration of the daemon that does not answer; `None` where nothing tells it.

    Raises `UsageError` where several lie at the usual places, and none is a node's.
    """
    from hushcast_cli.configuration.chosen_program import only_usual_config, usual_configs
    from hushcast_cli.last_testnet import testnet_member

    if choices.node is not None:
        return Path(testnet_member(choices.node).config)
    if choices.names_daemon or not (usual := usual_configs()):
        return None
    return next((file for file, one in usual.items() if one.name == "node"), None) or only_usual_config()


def _looked_at(program: Program, config: Path, seconds: float | None) -> list[Finding]:
    from hushcast_cli.awaited_progress import shown_when_slow
    from hushcast_cli.configuration.places import unit_of
    from hushcast_cli.configuration.state import one_of
    from hushcast_cli.daemon_calls import run
    from hushcast_cli.operate.stopped_program import finding_of_stopped
    from hushcast_protocol.base.errors import UsageError
    from hushcast_protocol.base.findings import bad, good
    from hushcast_runtime.storage.state_lock import holder

    try:
        settings = program.load(config)
    except UsageError as error:
        if not config.is_file():
            raise
        return [
            bad("configuration", str(error), f"put it right; `hushcast admin check-config {config}` looks")
        ]
    state = settings.state_path()

    async def examine() -> list[Finding]:
        async with shown_when_slow(_EXAMINES):
            found: list[Finding] = await program.examine.load()(settings, program)
        return found

    found = [
        good("configuration", f"{config}, {one_of(program.role(settings).name)}'s"),
        *run(examine, seconds),
    ]
    try:
        runs = holder(state) is not None
    except PermissionError:
        return found
    return found if runs else [*found, finding_of_stopped(program, config, state, unit_of(program, config))]


def tell_findings(choices: Choices, findings: Iterable[Finding]) -> None:
    """Print what was found; raise `Failure` if any of it is bad."""
    from msgspec import structs

    from hushcast_cli.exits import Failure
    from hushcast_cli.output import json_line, text_line, write

    bad = []
    for finding in findings:
        if finding.verdict == "bad":
            bad.append(finding.check)
        if choices.json:
            write(json_line(structs.asdict(finding)))
            continue
        write(text_line(f"{_MARKS[finding.verdict]} {finding.check}: {finding.found}"))
        if finding.advice:
            write(text_line(f"  → {finding.advice}"))
    if bad:
        raise Failure(f"not well: {', '.join(bad)}")
