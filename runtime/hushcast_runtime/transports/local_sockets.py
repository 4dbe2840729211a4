"""Unix sockets of a daemon for local programs: for its user alone, or shared with one group."""

from __future__ import annotations

import grp
import os
import socket as sockets
from pathlib import Path

import trio

from hushcast_protocol.base.errors import UsageError

MAX_PATH = 107  # bytes; Linux has 108 with the zero at the end
REACHED_WITHIN = 5.0  # seconds; whoever listens is on this machine


def listen_at(path: Path, group: str | None, what: str) -> trio.SocketListener:
    """Listen at `path` with mode 0600, or 0660 for `group`; errors (`UsageError`) call it `what`.

    A stale socket of a killed daemon is replaced; the caller holds the lock of the state directory.
    """
    socket = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        if _answers(path):
            raise UsageError(f"another daemon listens at {path}: give {what} another path")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        before = os.umask(0o177)  # from its first moment on the socket is the owner's alone
        try:
            socket.bind(str(path))
        finally:
            os.umask(before)
        if group is not None:
            _share(path, group)
        socket.listen(64)
    except OSError as error:
        socket.close()
        raise UsageError(f"{what} {path} cannot be opened: {error.strerror}") from None
    except UsageError:
        socket.close()
        raise
    return trio.SocketListener(trio.socket.from_stdlib_socket(socket))


async def why_unreached(path: str) -> str | None:
    """Return why nobody can be connected to at a socket, `None` where somebody answers."""
    try:
        with trio.move_on_after(REACHED_WITHIN):
            await (await trio.open_unix_socket(path)).aclose()
            return None
    except OSError as error:
        if error.strerror:
            return error.strerror
    return "it does not answer"


def _share(path: Path, group: str) -> None:
    try:
        number = grp.getgrnam(group).gr_gid
    except KeyError:
        path.unlink()
        raise UsageError(f"socket_group: there is no group {group}") from None
    try:
        if path.stat().st_gid != number:
            os.chown(path, -1, number)
        path.chmod(0o660)
    except OSError:
        path.unlink()
        raise UsageError(f"socket_group: the daemon's user is not a member of {group}") from None


def _answers(path: Path) -> bool:
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0
