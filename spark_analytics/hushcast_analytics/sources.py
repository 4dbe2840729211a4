"""Sources: what lies in a directory of traces, told without Spark, so that a mistake costs no time."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch
from pathlib import Path

from hushcast_analytics.errors import TracesError

TABLES = ("observations", "truths")
"""The directories of tables that the generator, or an earlier analysis, wrote."""
LINES = ("*.observations.jsonl", "*.truth.jsonl")
_LINE_BYTES, _ROW_BYTES = 350, 12  # a row as a line, and in a table: measured on 99 million
LITTLE = 500_000  # rows up to which Spark spends more time on its plans than on them; measured with 90,000


def look(source: str) -> int | None:
    """Return about how many rows the traces under `source` have; None where only Spark can tell.

    Raises `TracesError` if there are none.
    """
    if _elsewhere(source):
        return None
    directory = Path(source)
    if not directory.is_dir():
        raise TracesError(f"{source}: no such directory; give the one that traces were written to")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise TracesError(f"{source}: this directory cannot be read")
    if (directory / TABLES[0]).is_dir():
        if not all(any((directory / table).glob("run=*")) for table in TABLES):
            raise TracesError(f"{source}: tables half written; remove the directory and make them anew")
        return _bytes(directory, ("*.parquet",)) // _ROW_BYTES
    if not _files(directory, LINES):
        raise TracesError(f"{source}: no {LINES[0]} and no {LINES[1]} in it or below it")
    return _bytes(directory, LINES) // _LINE_BYTES


def make_room(run: str, out: str) -> None:
    """Make the directory `out` for a run; nothing is done where only Spark can look.

    Raises `TracesError` if it holds a run of that name, and `OSError`.
    """
    if _elsewhere(out):
        return
    Path(out).mkdir(parents=True, exist_ok=True)
    if (Path(out) / TABLES[0] / f"run={run}").exists():
        raise TracesError(f"{out} holds a run {run} already: remove it, or choose another directory")


def _elsewhere(source: str) -> bool:
    """Tell whether only Spark can look there: another file system, or a pattern."""
    known = re.match(r"[A-Za-z][\w+.-]*:", source) or any(sign in source for sign in "*?[{")
    return bool(known) or "HADOOP_CONF_DIR" in os.environ


def _files(directory: Path, patterns: tuple[str, ...]) -> list[Path]:
    return [
        Path(folder) / name
        for folder, _, names in os.walk(directory, followlinks=True)
        for name in names
        if any(fnmatch(name, pattern) for pattern in patterns)
    ]


def _bytes(directory: Path, patterns: tuple[str, ...]) -> int:
    return sum(file.stat().st_size for file in _files(directory, patterns))
