"""Writes the manual pages of the command line, one a command, from the same words as `--help`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from click_man.core import write_man_pages

from hushcast_cli.main import cli


def main(directory: Path, seconds: int) -> None:
    """Write the pages into a directory, dated by a Unix time."""
    directory.mkdir(parents=True, exist_ok=True)
    date = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
    write_man_pages("hushcast", cli, version=version("hushcast"), target_dir=str(directory), date=date)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
