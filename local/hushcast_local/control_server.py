"""The daemon's end of the control socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio

from hushcast.control_messages import (
    MAX_LINE,
    VERSION,
    FailureAnswer,
    Finding,
    Hello,
    decode_hello,
    encode_line,
)
from hushcast_local.application_requests import ApplicationRequests
from hushcast_local.conversation import Conversation
from hushcast_local.service import Service
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots
from hushcast_runtime.transports.lines import Lines
from hushcast_runtime.transports.local_sockets import listen_at

MAX_CONNECTIONS = 256  # applications that have said their version, at once; one more is told so
MAX_SILENT = 64  # connections that have not; one more takes the place of another
HELLO_WITHIN = 60.0  # seconds in which a connection must: some are made by hand


class ControlServer:
    """Serves applications; until the daemon is up it answers `status` and `doctor` only.

    Every program that can open the socket is trusted: its file mode is the access control, 0600 or, with
    `socket_group`, 0660.
    """

    def __init__(
        self,
        path: Path,
        status: Callable[[], dict[str, Any]],
        examine: Callable[[], Awaitable[list[Finding]]],
        counters: Counters,
        group: str | None = None,
    ) -> None:
        self._path = path
        self._group = group
        self._requests = ApplicationRequests(status, examine)
        self._counters = counters
        self._silent = ConnectionSlots(MAX_SILENT)
        self._served = 0

    def open(self, service: Service) -> None:
        """Serve everything from now on."""
        self._requests.open(service)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen until cancelled; the caller holds the lock of the state directory."""
        listener = listen_at(self._path, self._group, "the control socket")
        try:
            await trio.serve_listeners(self._serve, [listener], task_status=task_status)  # type: ignore[arg-type]
        finally:
            self._path.unlink(missing_ok=True)

    async def _serve(self, stream: trio.SocketStream) -> None:
        try:
            async with stream:
                await self._converse(Lines(stream, MAX_LINE))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the application went away
        except Exception:
            self._counters.add("internal_errors")
            log.exception("an application's connection met an error of this program")

    async def _converse(self, lines: Lines) -> None:
        try:
            if (version := await self._greet(lines)) is None:
                return
            with self._counted():
                await lines.write(encode_line(Hello(version)))
                await Conversation(lines, self._requests, self._counters).run()
        except DecodeError as error:
            await lines.write(encode_line(FailureAnswer("usage", str(error))))
        except Refusal as refusal:
            await lines.write(encode_line(FailureAnswer("refused", refusal.reason)))

    async def _greet(self, lines: Lines) -> int | None:
        """Return the version to speak; `None` where the application left, or was evicted: it sent none."""
        try:
            with self._silent.place(HELLO_WITHIN):
                line = await lines.read()
        except TransportError:
            return None
        if line is None:
            return None
        try:
            hello = decode_hello(line)
        except DecodeError:
            raise DecodeError(f"the first line is {encode_line(Hello()).decode()}") from None
        if (version := hello.chosen()) is None:
            raise DecodeError(f"the daemon speaks version {VERSION}, the application version {hello.version}")
        return version

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._served >= MAX_CONNECTIONS:
            raise Refusal(f"{MAX_CONNECTIONS} applications are connected: end one of them first")
        self._served += 1
        try:
            yield
        finally:
            self._served -= 1
