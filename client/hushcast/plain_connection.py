"""A connection without an event loop, for a program that has a question and ends: loops take long to load."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hushcast.control_messages import MAX_ANSWER, Hello, Request, encode_line
from hushcast.conversation import GONE, answered, check_hello, no_daemon, of_kind, understood
from hushcast.errors import ConnectionEnded, TimedOut
from hushcast.questions import Questions

_PIECE = 64 * 1024  # bytes read at once
_LONGEST = 1e9  # seconds; a limit above is none, as those of sockets have to fit into 63 bits of nanoseconds

AnswerT = TypeVar("AnswerT")
T = TypeVar("T")


class PlainConnection(Questions):
    """A daemon that is asked one thing after the other; each call blocks until it is answered."""

    def __init__(self, connection: socket.socket, ends: float) -> None:
        """Programs use `ask_plainly`; no call goes on after `ends`, by the monotonic clock."""
        self._connection = connection
        self._ends = ends
        self._came = bytearray()
        self._last = 0

    async def ask(self, request: Request, kind: type[AnswerT], timeout: float | None = None) -> AnswerT:
        """Ask for what has one answer of this kind; suspends nothing, and so needs no loop."""
        ends = self._ends if timeout is None else min(self._ends, time.monotonic() + timeout)
        self._last += 1
        self._send(encode_line(msgspec.structs.replace(request, request=self._last)), ends)
        while True:
            answer, number = understood(self._line(ends))
            if number == self._last:
                return of_kind(answered(answer), kind)

    def greet(self) -> None:
        """Exchange versions; raise as `check_hello`, `ConnectionEnded` or `TimedOut`."""
        self._send(encode_line(Hello()), self._ends)
        check_hello(self._line(self._ends))

    def _send(self, line: bytes, ends: float) -> None:
        self._wait_until(ends)
        with suppress(ConnectionError):  # the reader finds out, after what the daemon said last
            self._connection.sendall(line + b"\n")

    def _line(self, ends: float) -> bytes:
        seen = 0
        while (end := self._came.find(b"\n", seen)) < 0:
            seen = len(self._came)
            self._wait_until(ends)
            try:
                piece = self._connection.recv(_PIECE)
            except ConnectionError:
                piece = b""
            if not piece or seen > MAX_ANSWER:
                raise ConnectionEnded(GONE)
            self._came += piece
        line = bytes(self._came[:end])
        del self._came[: end + 1]
        return line

    def _wait_until(self, ends: float) -> None:
        left = ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left if left < _LONGEST else None)


def ask_plainly(
    path: Path, question: Callable[[Questions], Coroutine[Any, Any, T]], seconds: float = math.inf
) -> T:
    """Return what the daemon at a socket answers, within so many seconds.

    `question` awaits what `Questions` has, and nothing else. Raises as `Daemon` does that does not reconnect.
    """
    ends = time.monotonic() + seconds
    try:
        connection = socket.socket(socket.AF_UNIX)
    except OSError as error:
        raise no_daemon(path, error) from None
    with connection:
        try:
            connection.settimeout(seconds if seconds < _LONGEST else None)
            try:
                connection.connect(str(path))
            except TimeoutError:
                raise
            except OSError as error:
                raise no_daemon(path, error) from None
            daemon = PlainConnection(connection, ends)
            daemon.greet()
            return _result(question(daemon))
        except TimeoutError:
            raise TimedOut(f"the daemon has not answered within {seconds:g} s") from None


def _result(asked: Coroutine[Any, Any, T]) -> T:
    try:
        asked.send(None)
    except StopIteration as returned:
        return returned.value  # type: ignore[no-any-return]
    asked.close()
    raise RuntimeError("a plain question awaits what needs a loop")
