"""Follows the files of traces as they grow, whole lines only."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST = 1024 * 1024  # bytes read of one file at a time; the rest comes the next time


class Follower:
    """Reads what was written since the last look."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (daemon, record) for each new line, by their times.

        A daemon that is killed may leave half a line; what does not decode is passed over.
        """
        files = [
            (path.name.removesuffix(f".{kind}.jsonl"), path)
            for kind in ("observations", "truth")  # at the same time what was observed comes first
            for path in sorted(self._directory.glob(f"*.{kind}.jsonl"))
        ]
        return heapq.merge(*(self._records(name, path) for name, path in files), key=_time)

    def _records(self, name: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in self._lines(path):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield name, record

    def _lines(self, path: Path) -> list[bytes]:
        start = self._read.get(path, 0)
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(MOST)
        whole = data.rfind(b"\n") + 1
        self._read[path] = start + whole
        return data[:whole].splitlines()


def _time(line: tuple[str, dict[str, Any]]) -> float:
    return float(line[1].get("time", 0.0))
