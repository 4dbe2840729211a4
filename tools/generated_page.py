"""Renews a page of docs/ that is written from the code, or tells whether it is up to date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def renew_or_check(page: Path, renewed: Callable[[str], str], source: str) -> int:
    """Write a page anew, with `--check` only look whether it is old; return the exit code.

    `source` says what it is written from.
    """
    arguments = argparse.ArgumentParser(description=f"Writes {page.name} from {source}.")
    arguments.add_argument("--check", action="store_true", help="change nothing; fail if the page is old")
    check: bool = arguments.parse_args().check
    old = page.read_text()
    new = renewed(old)
    if new == old:
        return 0
    if check:
        sys.stderr.write(f"{page} is older than {source}: run python tools/{Path(sys.argv[0]).name}\n")
        return 1
    page.write_text(new)
    return 0
