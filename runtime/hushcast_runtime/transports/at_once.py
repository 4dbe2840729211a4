"""What a stream takes and has without waiting: of trio's own only a task is told, so that each needs one."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable

import trio

from hushcast_runtime.transports.next_turn import in_next_turn
from hushcast_runtime.transports.waiting_sockets import call_when_readable as call_when_socket_is
from hushcast_runtime.transports.waiting_sockets import closes


class ReadyStream(trio.abc.Stream):
    """A stream of this program that can be written to without waiting, and perhaps read from."""

    __slots__ = ()

    @abstractmethod
    def write_at_once(self, data: bytes) -> int:
        """Return how many bytes it took; raise what `send_all` raises where the stream ended."""

    def read_at_once(self, most: int) -> bytes | None:
        """Return what is there, `None` if nothing is; raise what `receive_some` raises."""
        return None

    def call_when_readable(self, call: Callable[[], None]) -> bool:
        """Have `call` called once, when there is something to read, or the end, or the stream was closed.

        It is called in a later turn of the scheduler, beside few others, and takes a millisecond at most.
        Returns false where it will not be: there is something already, or the stream calls nobody.
        """
        return False

    def close(self) -> None:
        """Close it; one that calls nobody is closed by the task that reads from it."""


def writes_at_once(stream: trio.abc.Stream) -> bool:
    """Tell whether `write_at_once` may be called."""
    return isinstance(stream, trio.SocketStream | ReadyStream)


def write_at_once(stream: trio.abc.Stream, data: bytes) -> int:
    """Write as much as a stream takes now, while no other task writes; return how many bytes that were.

    Raises what `send_all` raises where the stream ended.
    """
    if isinstance(stream, ReadyStream):
        return stream.write_at_once(data)
    assert isinstance(stream, trio.SocketStream)
    try:
        return os.write(stream.socket.fileno(), data)  # no socket of trio's blocks
    except BlockingIOError:
        return 0


def read_at_once(stream: trio.abc.Stream, most: int) -> bytes | None:
    """Return what a stream has now, while no task reads it; `None` if that is nothing, or nobody can tell.

    Raises what `receive_some` raises where the stream ended.
    """
    if isinstance(stream, ReadyStream):
        return stream.read_at_once(most)
    if not isinstance(stream, trio.SocketStream):
        return None
    try:
        return os.read(stream.socket.fileno(), most)
    except BlockingIOError:
        return None


def call_when_readable(stream: trio.abc.Stream, call: Callable[[], None]) -> bool:
    """Have `call` called as `ReadyStream.call_when_readable` does; a socket may have something already."""
    if isinstance(stream, ReadyStream):
        return stream.call_when_readable(call)
    return isinstance(stream, trio.SocketStream) and call_when_socket_is(stream.socket, call)


def close_at_once(stream: trio.abc.Stream) -> None:
    """Close a stream, and call who is to be called for it; one of another kind is closed by who reads it."""
    if isinstance(stream, ReadyStream):
        stream.close()
    elif isinstance(stream, trio.SocketStream):
        call = closes(stream.socket)
        stream.socket.close()
        if call is not None:
            in_next_turn(call)
