"""The commands that every program has: one runs it, one checks its configuration, one looks at it."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.configuration.config_summary import tell_summary
from hushcast_cli.configuration.places import config_of_any
from hushcast_cli.options import FILE, Choices, config_option, json_option, pass_choices
from hushcast_runtime.processes.program import Program

if TYPE_CHECKING:
    from hushcast_protocol.base.findings import Finding

_config_option = config_option("The configuration, TOML; the one that `hushcast init` wrote unless given.")


def add_commands(root: click.Group, program: Program) -> None:
    """Add a program's commands to its group, which is made where the command line has none."""
    group = root
    for word in program.group.split():
        child = group.commands.get(word)
        if not isinstance(child, click.Group):
            child = json_option(click.Group(word, help=program.help))
            group.add_command(child)
        group = child
    group.add_command(_run(program))
    if program.summary is not None:
        group.add_command(_check(program))
    if program.examine is not None:
        group.add_command(_doctor(program))


def _helped(text: str, example: str) -> str:
    return f"{cleandoc(text)}\n\n\b\nExample:\n  {example}"


def _run(program: Program) -> click.Command:
    @click.command(program.verb, help=_helped(program.run_help, program.run_command))
    @_config_option
    def run(config: Path | None) -> None:
        file = config_of_any(program, config)
        program.run.load()(lambda: program.load(file))

    return run


def _check(program: Program) -> click.Command:
    text = (
        f"Show what the configuration of a {program.noun} says.\n\n"
        "Nothing is started. A configuration that cannot be used ends with exit code 2, the key that is "
        f"wrong and why; `{program.group} {program.verb}` refuses to start with the same words."
    )
    file_name = f"{program.config or program.name}.toml"

    @click.command("check-config", help=_helped(text, f"hushcast {program.group} check-config {file_name}"))
    @click.argument("file", type=FILE, metavar="F")
    @json_option
    @pass_choices
    def check(choices: Choices, file: Path) -> None:
        assert program.summary is not None
        settings = program.load(file)
        tell_summary(choices, file, program.role(settings).name, program.summary.load()(settings))

    return check


def _doctor(program: Program) -> click.Command:
    @click.command("doctor", help=_helped(program.doctor_help, f"sudo {program.doctor_command}"))
    @_config_option
    @json_option
    @pass_choices
    def doctor(choices: Choices, config: Path | None) -> None:
        import trio

        from hushcast_cli.operate.doctor import EXAMINES, tell_findings
        from hushcast_cli.progress import shown_when_slow

        assert program.examine is not None
        settings, examine = program.load(config_of_any(program, config)), program.examine.load()

        async def examined() -> list[Finding]:
            async with shown_when_slow(EXAMINES):
                found: list[Finding] = await examine(settings, program)
            return found

        tell_findings(choices, trio.run(examined))

    return doctor
