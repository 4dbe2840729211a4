"""`hushcast admin key`: keys by which readers know an author, and the replacing of daemons' keys."""

from __future__ import annotations

from pathlib import Path

import click

from hushcast_cli.choices import Choices, pass_choices
from hushcast_cli.command_groups import CommandGroup
from hushcast_cli.operate.rotate import rotate
from hushcast_cli.options import json_option


@click.group(cls=CommandGroup)
@json_option
def key() -> None:
    """Make keys that sign messages; replace daemons' keys."""


@key.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@pass_choices
def new(choices: Choices, file: Path) -> None:
    """Make an author's key in the new FILE, and print its fingerprint.

    Readers see the fingerprint on every message published with `--as FILE`: all of them are known to be one
    author's. Whoever has the file can sign as that author. No daemon is asked.

    \b
    Example:
      hushcast admin key new author.key
    """
    from hushcast.keys import new_author
    from hushcast_cli.output import json_line, text_line, write

    author = new_author(file).fingerprint
    write(json_line({"file": str(file), "fingerprint": author}) if choices.json else text_line(author))


key.add_command(rotate)
