"""Watching lines: what an observer outside sees of each daemon's traffic, written into a trace of its own.

A daemon's line is its own tor's: all that this sends into the network and gets from it. The observer reads
nothing; it sees when so many bytes pass, and which way.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import trio

from hushcast_protocol.base.observations import Carried
from hushcast_runtime.environment import system_environment
from hushcast_runtime.file_tracer import FileTracer
from hushcast_runtime.tracing import NoTracer, Tracer

OBSERVER = "links"
"""The node of the trace, and the first part of its file's name."""


ObservedLinks = Literal["none", "clients", "all"]
"""Whose links an observer sees: nobody's, those of a testnet's clients, or of all its daemons."""


def unseen(size: int) -> None:
    """Hear of bytes that nobody watches."""


class LineSight(NamedTuple):
    """What hears of the sizes of bytes on a connection, at their moments at the daemon's end."""

    upward: Callable[[int], None] = unseen
    downward: Callable[[int], None] = unseen


class WatchedLines(msgspec.Struct, frozen=True):
    """Which lines are watched, and where the trace is written; its times count from `began`."""

    traces: str
    """The directory of the testnet's traces."""
    began: float
    epoch_seconds: int
    names: Sequence[str]
    """The daemons' names in the testnet."""
    tors: Sequence[str] = ()
    """The pid file of each one's own tor."""


class LineWatch:
    """Writes down what passes on watched lines; of none, nothing."""

    def __init__(self, lines: WatchedLines | None = None) -> None:
        self._tors = dict(zip(map(Path, lines.tors), lines.names, strict=True)) if lines else {}
        self._tracer = _tracer(lines) if lines else NoTracer()

    def sight(self, stream: trio.SocketStream) -> LineSight:
        """Return what is to hear of the bytes of a connection that a tor opened here."""
        inode = _inode(stream) if self._tors else None
        for file, line in self._tors.items():
            if inode is not None and _holds(file, inode):
                return LineSight(*(partial(self._observe, line, upward) for upward in (True, False)))
        return LineSight()

    def close(self) -> None:
        """Write no more."""
        self._tracer.close()

    def _observe(self, line: str, upward: bool, size: int) -> None:
        self._tracer.observe(Carried(line, upward, size))


def _tracer(lines: WatchedLines) -> Tracer:
    place, env = Path(lines.traces), system_environment()
    return FileTracer(place, OBSERVER, OBSERVER, lines.began, lines.epoch_seconds, env)


def _inode(stream: trio.SocketStream) -> str | None:
    """Return the number of the socket at the other end of a connection of this machine.

    By it a tor is known: on loopback it binds to no address of its own, whatever its torrc says.
    """
    ends = [_written(name) for name in (stream.socket.getpeername(), stream.socket.getsockname())]
    for line in Path("/proc/net/tcp").read_text().splitlines():
        fields = line.split()
        if fields[1:3] == ends:
            return fields[9]
    return None  # it has ended


def _written(name: tuple[str, int]) -> str:
    """Return an address and a port as the kernel's table has them, the former in this machine's order."""
    address = int.from_bytes(socket.inet_aton(name[0]), sys.byteorder)
    return f"{address:08X}:{name[1]:04X}"


def _holds(file: Path, inode: str) -> bool:
    """Tell whether the process that wrote a pid file has this socket."""
    with suppress(OSError, ValueError):  # it has not started, or has ended
        sockets = Path(f"/proc/{int(file.read_text())}/fd").iterdir()
        return any(_is_socket(each, inode) for each in sockets)
    return False


def _is_socket(descriptor: Path, inode: str) -> bool:
    with suppress(OSError):  # closed meanwhile
        return str(descriptor.readlink()) == f"socket:[{inode}]"
    return False
