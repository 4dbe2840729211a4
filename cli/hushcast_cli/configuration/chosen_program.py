"""Which program a command is about: the one that is named, or whose configuration it is."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.configuration.places import config_of, config_of_any, places
from hushcast_cli.configuration.state import program_of
from hushcast_cli.options import config_option
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.processes.program import Program, programs, role_called

_WORDS = list(
    dict.fromkeys(
        word for one in programs() for word in (one.name, *(role.init for role in one.roles)) if word
    )
)

program_argument = click.argument("program", required=False, type=click.Choice(_WORDS), metavar="[PROGRAM]")
"""What `hushcast init` calls a program, or its name: `node` is a relay or a client."""
program_config_option = config_option(
    "The configuration, TOML; the one that `hushcast init` wrote unless given."
)


def chosen_program(word: str | None, config: Path | None) -> tuple[Program, Path]:
    """Return the program to run or look at, and its configuration; raise `UsageError` where none is meant.

    A configuration of another program than the named one is refused when it is loaded.
    """
    if word is None:
        file = config if config is not None else only_usual_config()
        return program_of(file), file
    program = next((one for one in programs() if one.name == word), role_called(word)[0])
    return program, config_of_any(program, config) if word == program.name else config_of(word, config)


def usual_configs() -> dict[Path, Program]:
    """Return the configurations that lie where `hushcast init` writes them, by file."""
    usual = {places(role.init).config: one for one in programs() for role in one.roles}
    return {file: program for file, program in usual.items() if file.exists()}


def only_usual_config() -> Path:
    """Return the one configuration that lies where `hushcast init` writes it; raise `UsageError`."""
    found = usual_configs()
    if len(found) > 1:
        there = " and ".join(map(str, sorted(found)))
        raise UsageError(f"there are {there}: say which with --config, or name the PROGRAM")
    if not found:
        raise UsageError(
            f"no configuration at {places('node').config}: `hushcast init client` makes one, or name it with"
            " --config"
        )
    return next(iter(found))
