"""Refuses a folder in which a library is of another machine than the package that it goes into."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

CPUS = {"amd64": 62, "arm64": 183}
"""By Debian's names of machines, `e_machine` in the header of an ELF file."""


def foreign(folder: Path, machine: str) -> list[str]:
    """Return the libraries below a folder that a machine cannot load."""
    return [
        str(library.relative_to(folder))
        for library in sorted(folder.rglob("*.so*"))
        if library.is_file() and _cpu(library) != CPUS[machine]
    ]


def _cpu(library: Path) -> int | None:
    with library.open("rb") as file:
        header = file.read(20)
    if len(header) < 20 or not header.startswith(b"\x7fELF"):
        return None
    return int(struct.unpack_from("<H", header, 18)[0])


if __name__ == "__main__":
    wrong = foreign(Path(sys.argv[2]), sys.argv[1])
    if wrong:
        sys.exit(f"not for {sys.argv[1]}: {', '.join(wrong)}")
