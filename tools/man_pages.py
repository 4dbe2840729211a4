"""Writes the manual pages of the command line, one a command, from the same words as `--help`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click
from click_man.core import write_man_pages

from hushcast_cli.main import cli

_LONGEST = 500  # characters of a first sentence: none is as long


def main(directory: Path, seconds: int) -> None:
    """Write the pages into a directory, dated by a Unix time."""
    directory.mkdir(parents=True, exist_ok=True)
    date = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
    _keep_whole_sentences(cli)
    write_man_pages("hushcast", cli, version=version("hushcast"), target_dir=str(directory), date=date)


def _keep_whole_sentences(command: click.Command) -> None:
    """Let NAME lines hold the first sentence of the help, which click-man cuts at 45 characters."""
    command.short_help = command.get_short_help_str(_LONGEST)
    for child in command.commands.values() if isinstance(command, click.Group) else ():
        _keep_whole_sentences(child)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
