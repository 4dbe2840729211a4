"""Loopback sockets that `tcp` and `tor` both listen on, how they hand streams on, and what is said first."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import trio

from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import StreamHandler, TransportError

LOOPBACK = "127.0.0.1"

StreamT = TypeVar("StreamT", bound=trio.abc.Stream)


async def listen_on_loopback(port: int = 0, host: str = LOOPBACK) -> trio.SocketListener:
    """Listen on a loopback port, one of the kernel's choice when `port` is 0.

    A port left behind by a daemon that has just ended can be taken again at once. Raises `TransportError`
    when the port is taken.
    """
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        raise TransportError(f"a loopback port cannot be opened ({error.strerror})") from None
    return listeners[0]


async def listen_on_socket(path: Path, shared: bool = False) -> trio.SocketListener:
    """Listen on a Unix socket that is not there yet; raise `TransportError` when that cannot be.

    Its owner alone may connect or, where it is `shared`, its group, which is the directory's if that has the
    set-group-ID bit.
    """
    socket = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    try:
        await socket.bind(str(path))
        path.chmod(0o660 if shared else 0o600)
        socket.listen()  # until now nobody could connect, whatever the mode was
    except OSError as error:
        socket.close()
        raise TransportError(f"a Unix socket cannot be opened ({error.strerror})") from None
    return trio.SocketListener(socket)


async def say_ahead(stream: StreamT, ahead: bytes) -> StreamT:
    """Return a stream just opened, once `ahead` was said on it; raise `TransportError` once it is closed."""
    try:
        if ahead:
            await stream.send_all(ahead)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        await trio.aclose_forcefully(stream)
        raise TransportError("the connection broke") from None
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return stream


def port_of(listener: trio.SocketListener) -> int:
    """Return the TCP port of `listener`."""
    return int(listener.socket.getsockname()[1])


class _Accepted(trio.abc.AsyncResource):
    """A stream that came in: trio closes each when its handler has returned."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.is_kept = False

    async def aclose(self) -> None:
        if not self.is_kept:
            await self.stream.aclose()


class _Accepting(trio.abc.Listener[_Accepted]):
    """A listener of such streams."""

    def __init__(self, listener: trio.SocketListener) -> None:
        self._listener = listener

    async def accept(self) -> _Accepted:
        return _Accepted(await self._listener.accept())

    async def aclose(self) -> None:
        await self._listener.aclose()


async def serve_streams(listener: trio.SocketListener, handler: StreamHandler) -> None:
    """Run `handler` for every incoming stream, each in a task of its own, until cancelled.

    A handler that raises `Exception` costs its own stream only. The stream is closed after it, unless the
    handler returns that it is kept.
    """

    async def guarded(accepted: _Accepted) -> None:
        try:
            accepted.is_kept = bool(await handler(accepted.stream))
        except Exception as error:
            log.warning("a stream's handler failed", error=type(error).__name__)

    async with trio.open_nursery() as handlers:
        try:
            await trio.serve_listeners(guarded, [_Accepting(listener)], handler_nursery=handlers)
        except* trio.ClosedResourceError:
            await trio.sleep_forever()  # withdrawn: what was accepted is left to its handlers
