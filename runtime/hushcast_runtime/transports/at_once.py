"""What a stream takes without waiting: trio's own streams have no such write, so that each needs a task."""

from __future__ import annotations

import os
from abc import abstractmethod

import trio


class ReadyStream(trio.abc.Stream):
    """A stream of this program that can be written to without waiting."""

    __slots__ = ()

    @abstractmethod
    def write_at_once(self, data: bytes) -> int:
        """Return how many bytes it took; raise what `send_all` raises where the stream ended."""


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
