"""The socket at which a daemon that has no other tells its doctor's findings, for its own user alone.

Whoever connects is told, a line of JSON for each finding, and asks nothing: there is one answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from hushcast_protocol.base.findings import Finding
from hushcast_runtime.config import check_path
from hushcast_runtime.local_sockets import listen_at
from hushcast_runtime.rooms import Room
from hushcast_runtime.testnet_section import TestnetDaemonSettings
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.streams import serve_streams

DOCTORS_SOCKET = "doctor.sock"
"""In the state directory: where `hushcast … doctor` asks a daemon that runs."""

MAX_ASKING = 4  # at once; one more takes the place of another
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
    """Answer at the socket `path` until cancelled; raises `UsageError` where it cannot be opened."""
    room = Room(MAX_ASKING)
    encoder = msgspec.json.Encoder()

    async def answer(stream: trio.abc.Stream) -> None:
        with suppress(*_GONE), room.place(ANSWER_WITHIN):
            await stream.send_all(encoder.encode_lines(await examine()))

    listener = listen_at(path, None, "the doctor's socket")
    task_status.started()
    try:
        await serve_streams(listener, answer)
    finally:
        path.unlink(missing_ok=True)


async def ask_findings(path: Path) -> list[Finding] | None:
    """Return what the daemon at the socket `path` finds; `None` where none answers, or not in time."""
    told = b""
    try:
        with trio.fail_after(ANSWER_WITHIN):
            async with await trio.open_unix_socket(path) as stream:
                while len(told) < MAX_FINDINGS and (part := await stream.receive_some()):
                    told += part
        return msgspec.json.Decoder(Finding).decode_lines(told) or None
    except (OSError, trio.TooSlowError, msgspec.MsgspecError, *_GONE):
        return None
