"""What a process has taken of the processor, of the disk and of its connections, by the kernel's count."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SCHEDULED = 2  # which of a process's clocks: `clock_getcpuclockid` of Linux
_SOCKET = re.compile(r'(\S+) +\S+ +users:\(\("[^"]*",pid=(\d+),.*?bytes_acked:(\d+)')

SentBytes = Mapping[tuple[int, str], int]
"""Bytes sent on connections, by process and near end."""


@dataclass(frozen=True)
class ProcessCosts:
    """Of one process, since its start."""

    cpu: float
    """Seconds."""
    written: int
    """Bytes that went to the disk."""
    sent: Mapping[str, int]
    """Bytes sent on each connection that is open."""

    def since(self, before: ProcessCosts) -> ProcessCosts:
        """Return what it took since another moment; of connections that ended meanwhile nothing is known."""
        sent = {end: count - before.sent.get(end, 0) for end, count in self.sent.items()}
        return ProcessCosts(self.cpu - before.cpu, self.written - before.written, sent)


def process_costs(pid: int, sent: SentBytes) -> ProcessCosts:
    """Ask the kernel; what connections have `sent` was asked before, of all processes at once."""
    cpu = time.clock_gettime(~pid << 3 | _SCHEDULED)
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    written = next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))
    return ProcessCosts(cpu, written, {end: count for (owner, end), count in sent.items() if owner == pid})


def bytes_sent_to(port: int) -> SentBytes:
    """Return the bytes sent on each connection to a port of this machine, as far as they are open."""
    command = ["ss", "-tinpHO", "dst", f"127.0.0.1:{port}"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    found = (_SOCKET.search(line) for line in shown.splitlines())
    return {(int(one[2]), one[1]): int(one[3]) for one in found if one is not None}


def bytes_on_disk(directory: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
