"""Sockets in a state directory, for its owner alone: each tells one thing.

Whoever connects is told, in lines of JSON, and asks nothing: there is one answer. At the doctor's socket it
is what the daemon's doctor finds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from hushcast_protocol.base.findings import Finding
from hushcast_runtime.processes.config import check_path
from hushcast_runtime.processes.testnet_section import TestnetDaemonSettings
from hushcast_runtime.transports.base import StreamHandler, TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots
from hushcast_runtime.transports.local_sockets import listen_at
from hushcast_runtime.transports.streams import serve_streams

DOCTORS_SOCKET = "doctor.sock"
"""In the state directory: where `hushcast … doctor` asks a daemon that runs."""

MAX_ASKING = 4  # of one socket, at once; one more takes the place of another
MAX_FINDINGS = 64 * 1024  # bytes; a dozen lines
ANSWER_WITHIN = 120.0  # seconds; a connection through Tor to itself may take 60

Examine = Callable[[], Awaitable[list[Finding]]]

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, TransportError)


class ExaminedSettings(TestnetDaemonSettings, frozen=True, kw_only=True):
    """Settings of a daemon with a doctor's socket."""

    def doctors_socket(self) -> Path:
        """Return where a daemon that runs is asked by its doctor."""
        return self.state_path() / DOCTORS_SOCKET

    def check_own(self) -> None:
        """Raise `UsageError` where the doctor's socket would have no room."""
        check_path("state", self.doctors_socket())


async def tell_findings(
    path: Path, examine: Examine, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer at the doctor's socket until cancelled; raises `UsageError` where it cannot be opened."""

    async def findings() -> bytes:
        return msgspec.json.Encoder().encode_lines(await examine())

    await tell(path, findings, "the doctor's socket", task_status=task_status)


async def tell(
    path: Path,
    answer: Callable[[], Awaitable[bytes]],
    what: str,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Tell whoever connects to the socket `path` the answer; `what` it is, for errors. As `tell_findings`."""
    room = ConnectionSlots(MAX_ASKING)

    async def serve(stream: trio.abc.Stream) -> None:
        with suppress(*_GONE), room.place(ANSWER_WITHIN):
            await stream.send_all(await answer())

    await serve_at(path, serve, what, task_status=task_status)


async def serve_at(
    path: Path,
    serve: StreamHandler,
    what: str,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve whoever connects to the socket `path`, which is gone afterwards; raises as `tell`."""
    listener = listen_at(path, None, what)
    task_status.started()
    try:
        await serve_streams(listener, serve)
    finally:
        path.unlink(missing_ok=True)


async def ask_findings(path: Path) -> list[Finding] | None:
    """Return what the daemon at the socket `path` finds; `None` where none answers, or not in time."""
    try:
        return msgspec.json.Decoder(Finding).decode_lines(await ask(path, MAX_FINDINGS)) or None
    except msgspec.MsgspecError:
        return None


async def ask(path: Path, most: int) -> bytes:
    """Return what is told at the socket `path`, of about `most` bytes; nothing where none answers in time."""
    told = bytearray()
    try:
        with trio.fail_after(ANSWER_WITHIN):
            async with await trio.open_unix_socket(path) as stream:
                while len(told) < most and (part := await stream.receive_some()):
                    told += part
    except (OSError, trio.TooSlowError, *_GONE):
        return b""
    return bytes(told)
