"""The payload of a publication: from the command line, a file or standard input, as bytes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

from hushcast_cli.exits import Failure
from hushcast_cli.output import note
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.messages import MAX_PAYLOAD

_STDIN = 0
DASH = "-"
"""What stands for standard input."""


async def read_payload(argument: str | None, file: Path | None) -> bytes:
    """Return the payload; raise `Refusal` if it is too large, `Failure` if it cannot be read.

    Never reads more than a byte too many, however much there is.
    """
    if file is not None and str(file) != DASH:
        payload = await trio.to_thread.run_sync(_read_file, file, abandon_on_cancel=True)
    elif argument is None or argument == DASH or file is not None:
        payload = await trio.to_thread.run_sync(_read_stdin, abandon_on_cancel=True)
    else:
        payload = os.fsencode(argument)  # the bytes that were typed, valid UTF-8 or not
    if len(payload) > MAX_PAYLOAD:
        raise Refusal(f"the payload is too large: at most {MAX_PAYLOAD} bytes are possible")
    return payload


def _read_file(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}") from None


def _read_stdin() -> bytes:
    if sys.stdin is None:
        raise Failure("standard input is closed: give the payload as an argument or with --file")
    if sys.stdin.isatty():
        note("reading the payload from the terminal: end it with Ctrl-D")
    try:
        return _read(_STDIN)
    except OSError as error:
        raise Failure(f"standard input cannot be read: {error.strerror}") from None


def _read(descriptor: int) -> bytes:
    # Not through `sys.stdin`: a thread left behind in its lock would stop the interpreter from exiting.
    data = bytearray()
    while len(data) <= MAX_PAYLOAD and (part := os.read(descriptor, MAX_PAYLOAD + 1 - len(data))):
        data += part
    return bytes(data)
