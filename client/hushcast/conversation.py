"""An application's end of the control socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from hushcast.lines import Lines
from hushcast.words import Answer, Request, Shown, decode_answer, encode_line
from hushcast_protocol.base.errors import DecodeError, HushcastError

MAX_ANSWER = 4 * 1024 * 1024  # bytes; a message whose every byte is escaped in JSON has six times its size


class NoDaemon(HushcastError):
    """No daemon listens at the socket, or it went away."""


class OtherVersion(NoDaemon):
    """What listens at the socket answers in words that this client does not know."""


class Conversation:
    """One request and its answers."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    async def next(self) -> Answer:
        """Return the next answer; raise `NoDaemon` if the daemon went away."""
        try:
            line = await self._lines.read()
        except trio.BrokenResourceError:
            line = None
        if line is None:
            raise NoDaemon("the daemon closed the connection: it stopped or was restarted")
        try:
            return decode_answer(line)
        except DecodeError as error:
            raise OtherVersion(f"the daemon speaks another version: {error}") from None

    async def shown(self, cursor: int, acknowledged: bool = False) -> None:
        """Tell that all messages up to `cursor` were shown, or are not needed any more; raise `NoDaemon`."""
        try:
            await self._lines.write(encode_line(Shown(cursor, acknowledged)))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise NoDaemon("the daemon closed the connection: it stopped or was restarted") from None


@asynccontextmanager
async def ask(path: Path, request: Request) -> AsyncIterator[Conversation]:
    """Open a conversation with the daemon at a socket; raise `NoDaemon`."""
    try:
        stream = await trio.open_unix_socket(path)
    except PermissionError:
        raise NoDaemon(f"no daemon for you at {path}: Permission denied; `socket_group` may use it") from None
    except OSError as error:
        raise NoDaemon(f"no daemon at {path}: {error.strerror or error}") from None
    async with stream:
        lines = Lines(stream, MAX_ANSWER)
        try:
            await lines.write(encode_line(request))
        except trio.BrokenResourceError:
            raise NoDaemon("the daemon closed the connection: it stopped or was restarted") from None
        yield Conversation(lines)
