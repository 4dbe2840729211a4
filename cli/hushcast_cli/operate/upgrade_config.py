"""`hushcast admin upgrade-config`: an old configuration gets what this version writes into its own."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.options import FILE, json_option


@click.command("upgrade-config")
@click.argument("file", type=FILE, metavar="F")
@json_option
@pass_choices
def upgrade_config(choices: Choices, file: Path) -> None:
    """Bring a configuration that an earlier version made to this one.

    It gets the line that says which program it is of; all else, comments included, stays as it is. A file
    that has the line is not touched. A daemon that runs need not be told. Run it as the file's owner, or as
    root.

    \b
    Example:
      sudo hushcast admin upgrade-config /etc/hushcast/node.toml
    """
    from hushcast_cli.configuration.config_files import check_edited, write_edited
    from hushcast_cli.configuration.state import guessed, program_of
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.files import read_most
    from hushcast_runtime.processes.config import MAX_LARGE_CONFIG
    from hushcast_runtime.toml import read_keys

    data = read_most(file, MAX_LARGE_CONFIG)
    if len(data) > MAX_LARGE_CONFIG:  # what was not read would not be written, either
        raise UsageError(f"{file}: a configuration has at most {MAX_LARGE_CONFIG} bytes")
    keys, text = read_keys(data, str(file)), data.decode()
    added = [] if "program" in keys else ["program"]
    if added and "state" not in keys:  # with the line `hushcast join` would not take a network.toml any more
        raise UsageError(f"{file} is no configuration of a program, which has `state`")
    if added:
        name = guessed(keys)
        fresh = with_program(text, name)
        check_edited(fresh, {"program": name, **keys}, str(file), "program")
        write_edited(file, fresh)
    program = program_of(file)
    if choices.json:
        write(json_line({"file": str(file), "program": program.name, "added": added}))
    elif added:
        write(text_line(f'{file}: program = "{program.name}" is added'))
    else:
        write(text_line(f'{file}: program = "{program.name}" is there already'))


def with_program(text: str, name: str) -> str:
    """Return a configuration with the line that names its program, below the comment that it begins with."""
    lines = text.splitlines(keepends=True)
    blank = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    # A comment right above a key is that key's.
    above = blank + 1 if blank and blank < len(lines) and not lines[blank].strip() else 0
    return "".join([*lines[:above], f'program = "{name}"\n', *lines[above:]])
