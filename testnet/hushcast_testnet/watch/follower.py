"""Follows the files of traces as they grow, whole lines only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST = 4 * 1024 * 1024  # bytes read of one file at a time; the rest comes the next time


class Follower:
    """Reads what was written since the last look."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (daemon, record) for each new line; what was observed first, since deliveries end the rest.

        A daemon that is killed may leave half a line; what does not decode is passed over.
        """
        for kind in ("observations", "truth"):
            for path in sorted(self._directory.glob(f"*.{kind}.jsonl")):
                name = path.name.removesuffix(f".{kind}.jsonl")
                for line in self._lines(path):
                    try:
                        yield name, json.loads(line)
                    except ValueError:
                        continue

    def _lines(self, path: Path) -> list[bytes]:
        start = self._read.get(path, 0)
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(MOST)
        whole = data.rfind(b"\n") + 1
        self._read[path] = start + whole
        return data[:whole].splitlines()
