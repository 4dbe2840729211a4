"""What either end of a conversation makes of lines and failures, however it reads them; without I/O."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hushcast.control_messages import (
    OLDEST,
    VERSION,
    Answer,
    FailureAnswer,
    decode_answer,
    decode_hello,
    request_of,
)
from hushcast.errors import NoDaemon, NoSuchCursor, OtherVersion, Refusal, Starting, UsageError, Waiting
from hushcast_protocol.base.errors import DecodeError, HushcastError

GONE = "the daemon closed the connection: it stopped or was restarted"

_FAILURES: dict[str, type[HushcastError]] = {
    "usage": UsageError,
    "refused": Refusal,
    "starting": Starting,
    "cursor": NoSuchCursor,
    "waiting": Waiting,
}

AnswerT = TypeVar("AnswerT")


def check_hello(line: bytes) -> None:
    """Raise `OtherVersion` unless a daemon's first line has one of ours; `Refusal` where too many are."""
    told = ""
    try:
        answer = decode_answer(line)  # first: any object passes for a hello
    except DecodeError:
        with suppress(DecodeError):
            if OLDEST <= decode_hello(line).version <= VERSION:
                return
    else:
        if isinstance(answer, FailureAnswer):
            if answer.kind == "refused":
                raise Refusal(answer.reason)
            told = f": {answer.reason}"
    raise OtherVersion(f"what listens at the socket is no daemon of this version{told}")


def understood(line: bytes) -> tuple[Answer | OtherVersion, int]:
    """Return an answer, and which request it is to; one that is not understood ends that request alone.

    Raises `OtherVersion` for what is no answer at all.
    """
    answer: Answer | OtherVersion
    try:
        known = decode_answer(line)
        answer, number = known, known.request
    except DecodeError as error:
        answer = OtherVersion(f"the daemon speaks another version: {error}")
        try:
            number = request_of(line)
        except DecodeError:
            raise answer from None
    if number == 0:
        raise OtherVersion("the daemon speaks another version: it does not understand this program")
    return answer, number


def answered(answer: Answer | OtherVersion) -> Answer:
    """Return an answer, or raise what failed."""
    if isinstance(answer, OtherVersion):
        raise answer
    if isinstance(answer, FailureAnswer):
        raise _FAILURES[answer.kind](answer.reason)
    return answer


def of_kind(answer: Answer, kind: type[AnswerT]) -> AnswerT:
    """Return an answer, which is of this kind, or raise `OtherVersion`."""
    if not isinstance(answer, kind):
        raise OtherVersion("the daemon speaks another version: its answer is to another question")
    return answer


def no_daemon(path: Path, error: OSError) -> NoDaemon:
    """Return why no daemon was reached at a socket."""
    if isinstance(error, PermissionError):
        return NoDaemon(f"no daemon for you at {path}: Permission denied; `socket_group` may use it")
    if isinstance(error, ConnectionRefusedError):
        if not path.is_socket():
            return NoDaemon(f"no daemon at {path}: it is no socket, name the daemon's")
        return NoDaemon(f"no daemon at {path}: it ended; `hushcast run node` starts it")
    if isinstance(error, BlockingIOError):
        return NoDaemon(f"the daemon at {path} has too many programs that connect at once: try again")
    return NoDaemon(f"no daemon at {path}: {error.strerror or error}")
