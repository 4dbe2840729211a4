"""What a process has taken of the processor, of the disk and of its connections, by the kernel's count."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SCHEDULED = 2  # which of a process's clocks: `clock_getcpuclockid` of Linux
_SOCKET = re.compile(r'(\S+ +\S+) +users:\(\("[^"]*",pid=(\d+),')
_PASSED = re.compile(r"bytes_(?:acked|received):(\d+)")

PassedBytes = Mapping[tuple[int, str], int]
"""Bytes that passed on connections, both ways, by the process that has it and its two ends."""


@dataclass(frozen=True)
class ProcessCosts:
    """Of one process, since its start."""

    cpu: float
    """Seconds."""
    written: int
    """Bytes that went to the disk."""
    passed: Mapping[str, int]
    """Bytes both ways on each connection that it has open, to its tor and from there."""

    def since(self, before: ProcessCosts) -> ProcessCosts:
        """Return what it took since another moment; of connections only those that were open at both."""
        passed = {
            end: count - before.passed[end] for end, count in self.passed.items() if end in before.passed
        }
        return ProcessCosts(self.cpu - before.cpu, self.written - before.written, passed)


def process_costs(pid: int, passed: PassedBytes) -> ProcessCosts:
    """Ask the kernel; what `passed` on connections was asked before, of all processes at once."""
    cpu = time.clock_gettime(~pid << 3 | _SCHEDULED)
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    written = next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))
    return ProcessCosts(cpu, written, {end: count for (owner, end), count in passed.items() if owner == pid})


def bytes_passed() -> PassedBytes:
    """Return what passed on each connection of this machine that is open."""
    shown = subprocess.run(["ss", "-tinpHO"], capture_output=True, text=True, check=True).stdout  # noqa: S607
    lines = [(one, line) for line in shown.splitlines() if (one := _SOCKET.search(line)) is not None]
    return {(int(one[2]), one[1]): sum(map(int, _PASSED.findall(line))) for one, line in lines}


def bytes_on_disk(directory: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
