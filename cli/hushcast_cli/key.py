"""`hushcast key`: keys by which readers know an author, and the replacing of daemons' keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcast_cli.options import Choices, json_option, pass_choices
from hushcast_cli.rotate import rotate

if TYPE_CHECKING:
    from hushcast_protocol.base.secrets import Seed


@click.group()
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
      hushcast key new author.key
    """
    import os

    from hushcast_cli.links import write_new
    from hushcast_cli.output import json_line, text_line, write
    from hushcast_protocol.base.secrets import Seed
    from hushcast_protocol.content.bodies import fingerprint

    seed = Seed.draw(os.urandom)
    write_new(file, seed.reveal(), "key")
    author = fingerprint(seed.public())
    write(json_line({"file": str(file), "fingerprint": author}) if choices.json else text_line(author))


key.add_command(rotate)


def read_key(file: Path) -> Seed:
    """Return the key in a file that only its owner can read; raise `UsageError`."""
    from hushcast_cli.links import read_private
    from hushcast_protocol.base.errors import UsageError
    from hushcast_protocol.base.secrets import Seed

    data, alone = read_private(file, Seed.LENGTH, "key file")
    if not alone:
        raise UsageError(f"others can read the key file {file}: chmod 600 it, or make another key")
    if len(data) != Seed.LENGTH:
        raise UsageError(f"{file} is no key: `hushcast key new FILE` makes one")
    return Seed(data)
