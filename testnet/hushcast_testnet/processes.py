"""Processes that outlive their starter, and are signalled only if they are still the ones it started."""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from hushcast_runtime.transports.base import TransportError

STOP_WITHIN = 10.0  # seconds between asking a process to end and ending it

# The shell leaves the process in the background of a session of its own and tells its pid.
_DETACH = 'log=$1; shift; "$@" >>"$log" 2>&1 </dev/null & echo $!'


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process: its pid, and its start in clock ticks since boot, which no later one of that pid has."""

    name: str
    pid: int
    started: int


async def launch(name: str, command: Sequence[str], log: Path) -> ProcessRecord:
    """Start a process with none of our streams; raise `TransportError` if it ends at once."""
    with trio.CancelScope(shield=True):  # between its start and our reading of the pid nobody could stop it
        done = await trio.run_process(
            ["/bin/sh", "-c", _DETACH, "sh", str(log), *command],
            stdin=subprocess.DEVNULL,
            capture_stdout=True,
            start_new_session=True,
        )
    process = find(name, int(done.stdout))
    if process is None:
        raise TransportError(f"{name} ended at once: see {log}")
    return process


def find(name: str, pid: int) -> ProcessRecord | None:
    """Return the process that has a pid now, `None` when there is none that still runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else ProcessRecord(name, pid, int(fields[19]))


def find_by_command(endings: Mapping[tuple[str, ...], str]) -> list[ProcessRecord]:
    """Return the processes whose command ends like this, with the names given for it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            command = (entry / "cmdline").read_text(errors="surrogateescape").split("\0")[:-1]
        except OSError:  # it has ended
            continue
        for ending, name in endings.items():
            if tuple(command[-len(ending) :]) == ending and (process := find(name, int(entry.name))):
                found.append(process)
    return found


def is_running(process: ProcessRecord) -> bool:
    """Tell whether this very process still runs."""
    return find(process.name, process.pid) == process


def send(processes: Iterable[ProcessRecord], number: signal.Signals) -> None:
    """Signal processes that must all be running; raise `TransportError` at one that has ended."""
    for process in processes:
        if (descriptor := _open(process)) is None:
            raise TransportError(f"{process.name} has ended by itself")
        try:
            signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


async def stop(processes: Iterable[ProcessRecord]) -> None:
    """Stop these processes and return when they have ended; whoever has their pids by now is spared."""
    await _end(processes, ((signal.SIGTERM, STOP_WITHIN), (signal.SIGKILL, math.inf)))


async def kill(processes: Iterable[ProcessRecord]) -> None:
    """End these processes without warning and return when they have ended."""
    await _end(processes, ((signal.SIGKILL, math.inf),))


async def _end(processes: Iterable[ProcessRecord], steps: Iterable[tuple[signal.Signals, float]]) -> None:
    descriptors = [descriptor for process in processes if (descriptor := _open(process)) is not None]
    try:
        for number, within in steps:
            for descriptor in descriptors:
                with suppress(ProcessLookupError):  # it has ended and been reaped
                    signal.pidfd_send_signal(descriptor, number)
            with trio.move_on_after(within) as waiting:
                for descriptor in descriptors:
                    await trio.lowlevel.wait_readable(descriptor)  # readable: it has ended
            if not waiting.cancelled_caught:
                return
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _open(process: ProcessRecord) -> int | None:
    """Return a descriptor that stands for this very process, `None` when it has ended."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    if is_running(process):
        return descriptor
    os.close(descriptor)
    return None
