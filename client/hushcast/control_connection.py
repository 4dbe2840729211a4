"""One connection to a daemon: many requests at once, each with its answers in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from hushcast.control_messages import (
    MAX_ANSWER,
    Answer,
    ApplicationMessage,
    EndAnswer,
    EndNotice,
    FailureAnswer,
    Hello,
    Request,
    ShownNotice,
    UnsubscribeAnswer,
    encode_line,
)
from hushcast.conversation import GONE, answered, check_hello, no_daemon, of_kind, understood
from hushcast.errors import ConnectionEnded, OtherVersion
from hushcast_protocol.base.errors import HushcastError

AnswerT = TypeVar("AnswerT")


class Call:
    """One request under way, and its answers so far."""

    def __init__(self, connection: ControlConnection, number: int) -> None:
        self.number = number
        self._connection = connection
        self.is_over = False
        """Whether its last answer has come."""
        self._answers: deque[Answer | OtherVersion] = deque()
        self._news = anyio.Event()

    @property
    def has_answer(self) -> bool:
        """Whether an answer is here already."""
        return bool(self._answers)

    async def next(self) -> Answer:
        """Return the next answer; raise `ConnectionEnded` when the connection has ended, or what failed."""
        while not self._answers:
            if self._connection.error is not None:
                raise self._connection.error.with_traceback(None)
            await self._news.wait()
        return answered(self._answers.popleft())

    async def expect(self, kind: type[AnswerT]) -> AnswerT:
        """Return the next answer, which is of this kind, or raise as `next` and `OtherVersion`."""
        return of_kind(await self.next(), kind)

    async def over(self) -> None:
        """Return when the last answer has come, or the connection has ended."""
        while not self.is_over:
            await self._news.wait()

    def shown(self, shown: int, acknowledged: int, more: int) -> None:
        """Tell, some time, what was shown and acknowledged, and how many messages more may come."""
        self._connection.tell_shown(ShownNotice(shown, acknowledged, more, request=self.number))

    def put(self, answer: Answer | OtherVersion | None) -> None:
        """Note an answer, or that one was not understood; with `None`, that the connection has ended."""
        if answer is None:
            self.is_over = True
        else:
            self._answers.append(answer)
            self.is_over = self.is_over or isinstance(answer, FailureAnswer | UnsubscribeAnswer | EndAnswer)
        self._news.set()
        self._news = anyio.Event()


class ControlConnection:
    """Sends requests and gives each its answers; what waits to be sent goes in one piece."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream
        self._lines = BufferedByteReceiveStream(stream)
        self._calls: dict[int, Call] = {}
        self._last = 0
        self._waiting: list[bytes] = []
        self._shown: dict[int, ShownNotice] = {}
        self._to_send = anyio.Event()
        self.error: HushcastError | None = None
        """Why it has ended."""

    def open(self, request: Request) -> Call:
        """Make a request; raise why the connection has ended, if it has. Give the call back to `close`."""
        if self.error is not None:
            raise self.error.with_traceback(None)  # else it keeps the frames of each call
        self._last += 1
        call = self._calls[self._last] = Call(self, self._last)
        self._send(msgspec.structs.replace(request, request=call.number))
        return call

    def close(self, call: Call) -> None:
        """Hear no more of a call; the daemon is told, unless its last answer has come."""
        if self._calls.pop(call.number, None) is not None:
            self._shown.pop(call.number, None)
            if not call.is_over:
                self._send(EndNotice(request=call.number))

    @contextmanager
    def call(self, request: Request) -> Iterator[Call]:
        """Make a request, and close the call when the block is left."""
        call = self.open(request)
        try:
            yield call
        finally:
            self.close(call)

    async def ask(self, request: Request, kind: type[AnswerT]) -> AnswerT:
        """Make a request that has one answer and return it; raise as `Call.expect`."""
        with self.call(request) as call:
            answer = await call.expect(kind)
            call.is_over = True
            return answer

    async def finish(self, call: Call) -> None:
        """End a call, and return when the daemon has heard of it and of all that was said before."""
        if not call.is_over:
            self._send(EndNotice(request=call.number))
            await call.over()
        self.close(call)

    def tell_shown(self, shown: ShownNotice) -> None:
        """Send it together with what was not sent yet of the same subscription."""
        before = self._shown.get(shown.request)
        if before is not None:
            shown = ShownNotice(
                max(before.shown, shown.shown),
                max(before.acknowledged, shown.acknowledged),
                before.more + shown.more,
                request=shown.request,
            )
        self._shown[shown.request] = shown
        self._to_send.set()

    async def run(self) -> None:
        """Converse until the daemon leaves or this is cancelled; every call then ends with an error."""
        error: HushcastError = ConnectionEnded(GONE)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write)
                try:
                    await self._read()
                except OtherVersion as other:
                    error = other
                except _BROKEN:
                    pass
                tasks.cancel_scope.cancel()
        finally:
            self.error = error
            for call in self._calls.values():
                call.put(None)
            await anyio.aclose_forcefully(self._stream)

    async def greet(self) -> None:
        """Exchange versions; raise `OtherVersion`, `ConnectionEnded`, or `Refusal` where too many are."""
        try:
            await self._stream.send(encode_line(Hello()) + b"\n")
            line = await self._lines.receive_until(b"\n", MAX_ANSWER)
        except _BROKEN:
            raise ConnectionEnded(GONE) from None
        check_hello(line)

    async def _read(self) -> None:
        while True:
            line = await self._lines.receive_until(b"\n", MAX_ANSWER)
            answer, number = understood(line)
            if (call := self._calls.get(number)) is not None:
                call.put(answer)

    async def _write(self) -> None:
        try:
            while True:
                await self._to_send.wait()
                self._to_send = anyio.Event()
                lines, self._waiting = self._waiting, []
                lines += map(encode_line, self._shown.values())
                self._shown.clear()
                await self._stream.send(b"\n".join(lines) + b"\n")
        except _BROKEN:
            pass  # the reader finds out, after what the daemon said last

    def _send(self, said: ApplicationMessage) -> None:
        if self.error is None:
            self._waiting.append(encode_line(said))
            self._to_send.set()


_BROKEN = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.DelimiterNotFound,
)


async def open_connection(path: Path) -> ControlConnection:
    """Connect to the daemon at a socket; `ControlConnection.run` has to run from then on.

    Raises `NoDaemon`, or `Refusal` where too many are connected.
    """
    try:
        stream = await anyio.connect_unix(path)
    except OSError as error:
        raise no_daemon(path, error) from None
    connection = ControlConnection(stream)
    try:
        await connection.greet()
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise
    return connection
