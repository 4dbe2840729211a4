"""A socket in a state directory at which its owner asks, and has things done: a line in, lines out.

Beside the doctor's, at which nothing is asked. Nobody else can open it: the directory is the owner's alone,
and so is the socket.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import trio

from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime.processes.doctors_socket import MAX_ASKING, serve_at
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots

MAX_QUESTION = 16 * 1024  # bytes of a question: the longest filter in JSON, where a character may take six
MAX_ANSWER_LINE = 64 * 1024  # bytes of a line of an answer: a topic and names, in JSON
ASKED_WITHIN = 600.0  # seconds from a connection to its end: a hundred thousand deletions take some ten
SILENT_WITHIN = 60.0  # seconds between two reads of an answer; then nobody answers

Answer = Callable[[bytes], AsyncIterator[bytes]]
"""Returns the lines of an answer to a question; both are without their line ends."""

_GONE = (trio.BrokenResourceError, trio.ClosedResourceError, TransportError)


class NotAnswered(HushcastError):
    """Nobody answers at the socket, or whoever did has gone away in the middle."""


async def answer_questions(
    path: Path, answer: Answer, what: str, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer at the socket `path` until cancelled; `what` it is, for errors.

    Raises `UsageError` where it cannot be opened.
    """
    room = ConnectionSlots(MAX_ASKING)

    async def serve(stream: trio.abc.Stream) -> None:
        with suppress(*_GONE), room.place(ASKED_WITHIN):
            asked = bytearray()
            while b"\n" not in asked:
                part = await stream.receive_some()
                if not part or len(asked) > MAX_QUESTION:
                    return
                asked += part
            async for line in answer(bytes(asked).partition(b"\n")[0]):
                await stream.send_all(line + b"\n")

    await serve_at(path, serve, what, task_status=task_status)


async def ask_question(path: Path, question: bytes, take: Callable[[bytes], bool]) -> None:
    """Ask at the socket `path`, and give `take` each line of the answer until it returns that it has all.

    Raises `NotAnswered`.
    """
    try:
        async with await trio.open_unix_socket(path) as stream:
            await stream.send_all(question + b"\n")
            told = bytearray()
            while True:
                with trio.fail_after(SILENT_WITHIN):
                    part = await stream.receive_some()
                if not part or len(told) > MAX_ANSWER_LINE:
                    raise NotAnswered("it went away in the middle")
                told += part
                *lines, told = told.split(b"\n")
                if any(take(bytes(line)) for line in lines):
                    return
    except trio.TooSlowError:
        raise NotAnswered("it does not answer") from None
    except (OSError, *_GONE) as error:
        raise NotAnswered(getattr(error, "strerror", None) or "it went away in the middle") from None
