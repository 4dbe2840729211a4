"""The payload of a publication: from the command line, a file or standard input, as bytes."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from hushcast_cli.exits import Failure
from hushcast_cli.output import note
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD

_STDIN = 0
_PART = 65_536  # bytes of lines read at once
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
    return _checked(payload)


async def read_lines(file: Path | None) -> AsyncIterator[bytes]:
    """Yield the lines of a file or of standard input as they come, without their ends.

    Raises `Refusal` at one that is too large, `Failure` if they cannot be read.
    """
    is_stdin = file is None or str(file) == DASH
    try:
        descriptor = _STDIN if is_stdin else os.open(str(file), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}") from None
    if is_stdin:
        _check_stdin("the lines")
    rest = b""
    while part := await trio.to_thread.run_sync(os.read, descriptor, _PART, abandon_on_cancel=True):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield _checked(line)
        _checked(rest)
    if rest:
        yield rest


def _checked(payload: bytes) -> bytes:
    if len(payload) > MAX_PAYLOAD:
        raise Refusal(f"the payload is too large: at most {MAX_PAYLOAD} bytes are possible")
    return payload


def _check_stdin(what: str) -> None:
    if sys.stdin is None:
        raise Failure("standard input is closed: give the payload as an argument or with --file")
    if sys.stdin.isatty():
        note(f"reading {what} from the terminal: end with Ctrl-D")


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
    _check_stdin("the payload")
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
