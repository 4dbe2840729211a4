"""Sources: what lies in a directory of traces, told without Spark, so that a mistake costs no time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from hushcast_analytics.errors import TracesError

TABLES = ("observations", "truths")
"""The directories of tables that the generator, or an earlier analysis, wrote."""
LINES = ("*.observations.jsonl", "*.truth.jsonl")
_LINE_BYTES, _ROW_BYTES = 350, 12  # a row as a line, and in a table: measured on 99 million
_SIGNS = re.compile(r"[\[\]{}*?\\]")  # by which a name means other names
_COMPRESSED = {".gz", ".bz2", ".deflate", ".lz4", ".snappy", ".xz", ".zst"}


def look(source: str) -> int | None:
    """Return about how many rows the traces under `source` have; None where only Spark can tell.

    Raises `TracesError` if there are none, or some that Spark would leave out without a word, or read twice.
    """
    if _elsewhere(source):
        return None
    directory = Path(source)
    if not directory.is_dir():
        raise TracesError(f"{source}: no such directory; give the one that traces were written to")
    if ":" in (path := str(directory.absolute())) and _SIGNS.search(path):
        raise TracesError(f"{source}: Spark reads no name with a colon where there is any of []{{}}*?\\, too")
    if not os.access(directory, os.R_OK | os.X_OK):
        raise TracesError(f"{source}: this directory cannot be read")
    if (directory / TABLES[0]).is_dir():
        if not all(any((directory / table).glob("run=*")) for table in TABLES):
            raise TracesError(f"{source}: tables half written; remove the directory and make them anew")
        tables = _files(directory, ("*.parquet",))
        return sum(file.stat().st_size for file in tables if file.is_file()) // _ROW_BYTES
    if not (files := _files(directory, LINES)):
        raise TracesError(f"{source}: no {LINES[0]} and no {LINES[1]} in it or below it")
    packed = _files(directory, tuple(f"{pattern}{suffix}" for pattern in LINES for suffix in _COMPRESSED))
    if packed:
        raise TracesError(f"{packed[0]} is compressed, and would be left out: unpack it, or remove it")
    for file in files:
        _check_is_read(file, directory)
    return sum(file.stat().st_size for file in files) // _LINE_BYTES


def most_rows(sources: Iterable[str]) -> int | None:
    """Return about how many rows the largest of some sources has, as `look`; None where one is not known."""
    found = [look(source) for source in sources]
    known = [rows for rows in found if rows is not None]
    return max(known) if len(known) == len(found) else None


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
    if "HADOOP_CONF_DIR" in os.environ:
        return True
    known = re.match(r"[A-Za-z][\w+.-]*:", source) or any(sign in source for sign in "*?[{")
    return bool(known) and not Path(source).is_dir()


def spark_path(source: str) -> str:
    """Return the path by which Spark reads `source`: signs in a directory's own name stand for themselves."""
    if _elsewhere(source) or not Path(source).is_dir():
        return source
    return _SIGNS.sub(r"\\\g<0>", str(Path(source).absolute()))


def _files(directory: Path, patterns: tuple[str, ...]) -> list[Path]:
    """Return the files below a directory whose names match; raise `TracesError` where two ways lead."""
    found: list[Path] = []
    been: dict[str, str] = {}
    for folder, _, names in os.walk(directory, followlinks=True):
        # Before anything below it is looked at: two links that lead back are two to the power of 40 ways.
        if (first := been.setdefault(os.path.realpath(folder), folder)) != folder:
            raise TracesError(f"{folder} is {first} again, by a link: its lines would count twice")
        matching = (name for name in names if any(fnmatch(name, pattern) for pattern in patterns))
        found += (Path(folder) / name for name in matching)
    return found


def _check_is_read(file: Path, directory: Path) -> None:
    if not file.is_file():
        raise TracesError(f"{file} is not a file: remove it")
    parts = file.relative_to(directory).parts
    hidden = [part for part in parts if part[0] == "." or (part[0] == "_" and "=" not in part)]
    if hidden or ":" in file.name:
        raise TracesError(f"{file}: Spark does not read {(hidden or parts)[-1]}: give it another name")


def check_name(file: Path) -> None:
    """Raise `TracesError` for a file that Spark would take for another, for several, or for none."""
    if _SIGNS.search(str(file)) or ":" in file.name:
        raise TracesError(f"{file}: Spark does not read names with any of []{{}}*?\\ or a colon: rename it")
    if file.name[0] in "._":
        raise TracesError(f"{file}: Spark does not read names that begin with {file.name[0]}: rename it")
    if file.suffix in _COMPRESSED:
        raise TracesError(f"{file}: Spark takes what ends with {file.suffix} for compressed: rename it")
