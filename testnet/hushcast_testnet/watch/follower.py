"""Follows the files of traces as they grow, whole lines only."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec

from hushcast_protocol.base.trace import Observation, Truth

MOST = 1024 * 1024  # bytes read of one file at a time; the rest comes the next time. A longer line is none
FAR = 1e9  # seconds from a testnet's beginning, thirty years: none was written further off

_hints = {**get_type_hints(Observation), **get_type_hints(Truth)}
_hints |= {"kind": str, "time": Annotated[float, msgspec.Meta(ge=-FAR, le=FAR)]}
_Line = msgspec.defstruct(
    "_Line", [(name, hint | msgspec.UnsetType, msgspec.UNSET) for name, hint in _hints.items()]
)
_check = msgspec.json.Decoder(_Line).decode


class Follower:
    """Reads what was written since the last look."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}

    def new(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (daemon, record) for each new line, by their times.

        A daemon that is killed may leave half a line; what does not decode is passed over, and so is what has
        another type or a time further off than a record can.
        """
        files = [
            (path.name.removesuffix(f".{kind}.jsonl"), path)
            for kind in ("observations", "truth")  # at the same time what was observed comes first
            for path in sorted(self._directory.glob(f"*.{kind}.jsonl"))
            if path.is_file()  # a pipe would be waited for
        ]
        return heapq.merge(*(self._records(name, path) for name, path in files), key=_time)

    def _records(self, name: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in self._lines(path):
            try:
                _check(line)
                yield name, msgspec.json.decode(line)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                continue

    def _lines(self, path: Path) -> list[bytes]:
        start = self._read.get(path, 0)
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(MOST)
        whole = data.rfind(b"\n") + 1
        # Of a line that is longer the rest is passed over part by part, or its file would stand still.
        self._read[path] = start + (len(data) if len(data) == MOST and not whole else whole)
        return data[:whole].splitlines()


def _time(line: tuple[str, dict[str, Any]]) -> float:
    return float(line[1].get("time", 0.0))
